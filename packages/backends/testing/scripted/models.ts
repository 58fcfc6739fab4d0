/**
 * Models of the scripted worker. No arithmetic of a network happens; what stands for the weights is a digest over everything that
 * was applied, in order. Two models with equal digests were trained on exactly the same rows and settings, which is what a replay
 * must reach.
 *
 * The rules are the real worker's: model-wide contiguous seq_id with a journal, `expect_step`, fences per run, no weights loaded
 * over an accumulated gradient, checkpoints that outlive a restart while models do not. `foreign`: those of SkyRL's server instead,
 * where numbers mean nothing, a request that comes twice is applied twice, and a new model finds the gradient that an unloaded one left.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Datum } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import { parseBody, Refusal } from "./refusal.ts";
import { vocabularySize } from "./vocabulary.ts";

export interface Fence {
  readonly runId: string;
  readonly token: number;
}
export interface ScriptedModel {
  readonly modelId: string;
  readonly baseModel: string;
  step: number;
  digest: string;
  lastSeqId: number;
  accumulated: string[];
  readonly journal: Map<number, { payload: string; requestId: string }>;
  readonly runId: string | null;
}
interface Checkpoint {
  readonly name: string;
  readonly path: string;
  readonly step: number;
  readonly digest: string;
  readonly baseModel: string;
}
export interface SamplingSession {
  readonly modelId: string | null;
  readonly version: number;
  /** Of the weights it stands for. */
  readonly digest?: string;
}
type Result = Readonly<Record<string, unknown>>;

const LossInput = z.object({
  data: z.array(Datum).min(1),
  loss_fn: z.enum(["cross_entropy", "importance_sampling", "ppo"]),
  loss_fn_config: z.record(z.string(), z.number()).optional(),
});
const Numbered = z.object({ model_id: z.string(), seq_id: z.int().min(1) });

export class ScriptedModels {
  readonly models = new Map<string, ScriptedModel>();
  readonly sampling = new Map<string, SamplingSession>();
  readonly futures = new Map<string, Result>();
  /** "Disk": kept across restarts. */
  readonly checkpoints = new Map<string, Checkpoint>();
  /** Highest fence by run. "Disk" too: a restart lets no older holder back in. */
  readonly #fences = new Map<string, number>();
  #ids = 0;
  readonly #gapMs: number;
  readonly foreign: boolean;
  /** Foreign: what unloaded models left, taken by the next new one. */
  #leftover: string[] = [];
  readonly #everKnown = new Set<string>();

  /** @param gapMs how long a request waits for those before it */
  constructor(gapMs: number, foreign = false) {
    this.#gapMs = gapMs;
    this.foreign = foreign;
  }

  /** Memory is lost; disk is not. */
  restart(): void {
    this.models.clear();
    this.#leftover = [];
    if (this.foreign) return;
    this.sampling.clear();
    this.futures.clear();
  }

  unload(modelId: string): void {
    this.#leftover.push(...(this.models.get(modelId)?.accumulated ?? []));
    this.models.delete(modelId);
  }

  newFuture(result: Result): string {
    const requestId = `request-${++this.#ids}`;
    this.futures.set(requestId, result);
    return requestId;
  }

  create(baseModel: string, seed: number, fence: Fence | null): Result {
    this.checkFence(fence, null);
    const model: ScriptedModel = {
      modelId: `model-${++this.#ids}`,
      baseModel,
      step: 0,
      digest: digestOf("init", baseModel, seed),
      lastSeqId: 0,
      accumulated: this.foreign ? this.#leftover.splice(0) : [],
      journal: new Map(),
      runId: fence?.runId ?? null,
    };
    this.models.set(model.modelId, model);
    this.#everKnown.add(model.modelId);
    return { model_id: model.modelId, request_id: this.newFuture({ type: "create_model", model_id: model.modelId }) };
  }

  get(modelId: string): ScriptedModel {
    const model = this.models.get(modelId);
    if (!model) throw new Refusal("unknown_model", `no model ${modelId} since this worker booted`);
    return model;
  }

  /** An older holder of a run, or another run, is refused from the moment a newer one has called. */
  checkFence(fence: Fence | null, model: ScriptedModel | null): void {
    if (model?.runId != null && fence?.runId !== model.runId) {
      throw new Refusal("fenced", `model ${model.modelId} belongs to another run`);
    }
    if (fence === null) return;
    const highest = this.#fences.get(fence.runId) ?? -1;
    if (fence.token < highest) throw new Refusal("fenced", `fence ${fence.token} is behind ${highest}`);
    this.#fences.set(fence.runId, fence.token);
  }

  /** A numbered training request: its future, new or from the journal. */
  async submit(name: TrainingRequest, body: unknown, fence: Fence | null): Promise<Result> {
    const { model_id: modelId, seq_id: seqId } = parseBody(Numbered, body);
    if (this.foreign) return this.#submitForeign(name, modelId, body);
    const model = this.get(modelId);
    this.checkFence(fence, model);
    const payload = digestOf(name, JSON.stringify(body));
    const known = model.journal.get(seqId);
    if (known) {
      if (known.payload !== payload) throw new Refusal("conflict", `seq_id ${seqId} was another request`, "seq_id");
      return { request_id: known.requestId, model_id: modelId };
    }
    await this.#waitForTurn(model, seqId);
    // Parsed before the number is used up: a refused body may be corrected and sent again under it.
    const work = trainingRequests[name](this, model, body);
    model.lastSeqId = seqId;
    const requestId = this.newFuture(settle(work));
    model.journal.set(seqId, { payload, requestId });
    return { request_id: requestId, model_id: modelId };
  }

  #submitForeign(name: TrainingRequest, modelId: string, body: unknown): Result {
    const model = this.models.get(modelId);
    if (!model && !this.#everKnown.has(modelId)) throw new Refusal("unknown_model", "Model not found");
    const result = model ? settle(trainingRequests[name](this, model, body)) : notLoaded(modelId);
    return { request_id: this.newFuture(result), model_id: modelId };
  }

  async #waitForTurn(model: ScriptedModel, seqId: number): Promise<void> {
    const deadline = performance.now() + this.#gapMs;
    while (seqId > model.lastSeqId + 1) {
      if (performance.now() > deadline) {
        throw new Refusal("sequence_gap", `seq_id ${model.lastSeqId + 1} did not come before ${seqId}`, "seq_id");
      }
      await sleep(5);
    }
    if (seqId <= model.lastSeqId) throw new Refusal("conflict", `seq_id ${seqId} is past`, "seq_id");
  }

  newSamplingSession(session: SamplingSession): string {
    const id = `sampling-${++this.#ids}`;
    this.sampling.set(id, session);
    return id;
  }
}

/** Of a model that its server had before it restarted. */
export const notLoaded = (modelId: string): Result => ({ error: `Model ${modelId} not loaded`, status: "failed" });

/** A training request checks its body at once and gives what is to be done. */
type Training = (store: ScriptedModels, model: ScriptedModel, body: unknown) => () => Result;

function settle(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { error: error.message, category: "user", ...error.body };
  }
}

const lossRequest =
  (key: "forward_input" | "forward_backward_input", accumulate: boolean): Training =>
  (_store, model, body) => {
    const input = parseBody(z.object({ [key]: LossInput }), body)[key];
    if (!input) throw new Refusal("bad_input", `${key} is missing`, key);
    for (const [row, datum] of input.data.entries()) checkDatum(datum, row);
    return () => {
      if (accumulate) model.accumulated.push(...input.data.map((datum) => digestOf(JSON.stringify(datum))));
      return lossResult(input.data);
    };
  };

export const trainingRequests = {
  forward: lossRequest("forward_input", false),
  forward_backward: lossRequest("forward_backward_input", true),
  optim_step: (_store, model, body) => {
    const { adam_params, expect_step } = parseBody(
      z.object({ adam_params: z.record(z.string(), z.number()), expect_step: z.int().optional() }),
      body,
    );
    return () => {
      if (expect_step !== undefined && expect_step !== model.step) {
        throw new Refusal("step_mismatch", `the model is at step ${model.step}, not ${expect_step}`, "expect_step");
      }
      model.digest = digestOf(model.digest, JSON.stringify(adam_params), ...model.accumulated);
      const datums = model.accumulated.length;
      model.accumulated = [];
      model.step++;
      return { metrics: { grad_norm: 1, skipped: 0, datums }, step: model.step };
    };
  },
  save_weights: (store, model, body) => {
    const { path: name } = parseBody(z.object({ path: z.string().regex(/^[A-Za-z0-9_-]{1,255}$/) }), body);
    return () => {
      const path = `tinker://${model.modelId}/weights/${name}`;
      const { step, digest, baseModel } = model;
      const known = store.checkpoints.get(path);
      if (known && store.foreign) throw new Refusal("conflict", `Checkpoint '${name}' already exists`, "path");
      if (known && known.digest !== digest) throw new Refusal("conflict", `${path} exists with other content`, "path");
      store.checkpoints.set(path, { name, path, step, digest, baseModel });
      // What is stored is the digest alone.
      return { path, bytes: Buffer.byteLength(digest) };
    };
  },
  load_weights: (store, model, body) => {
    const { path, optimizer } = parseBody(z.object({ path: z.string(), optimizer: z.boolean() }), body);
    const checkpoint = store.checkpoints.get(path);
    if (!checkpoint) throw new Refusal("unknown_model", `no complete checkpoint ${path}`, "path");
    return () => {
      if (model.accumulated.length > 0 && !store.foreign)
        throw new Refusal("conflict", "a gradient is accumulated", "path");
      // Without its optimizer the weights start a new count of steps.
      model.step = optimizer ? checkpoint.step : 0;
      model.digest = optimizer ? checkpoint.digest : digestOf("weights only", checkpoint.digest);
      return { path, step: model.step };
    };
  },
  save_weights_for_sampler: (store, model) => () => {
    const { modelId, step: version, digest } = model;
    const id = store.newSamplingSession({ modelId, version, digest });
    return store.foreign ? { sampling_session_id: id } : { sampling_session_id: id, weight_version: version };
  },
} satisfies Record<string, Training>;
export type TrainingRequest = keyof typeof trainingRequests;

function checkDatum(datum: Datum, row: number): void {
  const tokens = datum.model_input.chunks.flatMap((chunk) => chunk.tokens);
  const targets = datum.loss_fn_inputs.target_tokens;
  const where = `data[${row}]`;
  if (!targets) throw new Refusal("bad_input", "target_tokens are missing", `${where}.loss_fn_inputs.target_tokens`);
  for (const [name, tensor] of Object.entries(datum.loss_fn_inputs)) {
    if (tensor.data.length !== tokens.length) {
      throw new Refusal("bad_input", `${tensor.data.length} entries for ${tokens.length} tokens`, `${where}.${name}`);
    }
  }
  for (const token of [...tokens, ...targets.data]) {
    if (token < 0 || token >= vocabularySize)
      throw new Refusal("bad_input", `token ${token} is not in the vocabulary`, where);
  }
}

/** The trainer agrees with the sampler to the last digit; masked tokens get a number that depends on their place alone. */
function lossResult(data: readonly Datum[]): Result {
  let trained = 0;
  const outputs = data.map((datum) => {
    const { logprobs, weights, target_tokens: targets } = datum.loss_fn_inputs;
    const values = (targets?.data ?? []).map((_, at) => logprobs?.data[at] ?? -1 / (at + 1));
    trained += (weights?.data ?? []).filter((weight) => weight !== 0).length;
    const losses = values.map((value, at) => -value * (weights?.data[at] ?? 0));
    return { logprobs: tensor(values), elementwise_loss: tensor(losses), sum: losses.reduce((a, b) => a + b, 0) };
  });
  return {
    loss_fn_output_type: "tensors",
    loss_fn_outputs: outputs.map(({ sum: _sum, ...tensors }) => tensors),
    metrics: {
      "loss:sum": outputs.reduce((total, { sum }) => total + sum, 0),
      "trained_tokens:sum": trained,
      "clipped_tokens:sum": 0,
      "logprob_gap:max": 0,
    },
  };
}

const tensor = (data: number[]) => ({ data, dtype: "float32", shape: [data.length] });

const digestOf = (...parts: readonly (string | number)[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${String(part).length}:${part}`);
  return hash.digest("hex");
};
