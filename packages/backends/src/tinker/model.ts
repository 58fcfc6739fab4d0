/**
 * A model under training. Every call carries the caller's committed `seqId`; a retry is the very same request, which the server
 * answers from its journal. Where the dialect is fenced, every call also says which run and holder it speaks for.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type {
  AdamSpec,
  ForwardBackwardResult,
  LossSpec,
  ModelState,
  OptimResult,
  TrainableModel,
  TrainingDatum,
} from "@rolldeck/contracts/ports/backend";
import { ForwardBackwardReply, OptimStepReply, WorkerModel } from "@rolldeck/contracts/wire/tinker";
import { z } from "zod";
import { adamParams, lossInput } from "./datums.ts";
import type { TinkerDialect } from "./dialects.ts";
import { awaitFuture } from "./future.ts";
import type { TinkerHttp } from "./http.ts";
import { parseReply } from "./parse-reply.ts";
import { isUnknown } from "./session.ts";

export interface Fence {
  readonly runId: string;
  readonly token: number;
}
export interface ModelOptions {
  readonly http: TinkerHttp;
  readonly dialect: TinkerDialect;
  readonly modelId: string;
  readonly fence: Fence;
  readonly signal: AbortSignal | undefined;
  readonly outageMs: number;
  /** What serves is stored, for samplers that are other servers; else this server samples it from memory. */
  readonly storesForSamplers: boolean;
}

/** `bytes` is our worker's; other servers leave it out. */
const SavedReply = z.object({ path: z.string(), bytes: z.number().nonnegative().nullish() });
const StoredForSamplers = z.object({ path: z.string(), step: z.int() });
const SamplerReply = z.object({ sampling_session_id: z.string(), weight_version: z.int().nullish() });

export class TinkerModel implements TrainableModel {
  readonly modelId: string;
  readonly deleteWeights?: (path: string) => Promise<void>;
  readonly #options: ModelOptions;
  /** Updates made through this object; stands in for the version where the server does not tell. */
  #steps = 0;

  constructor(options: ModelOptions) {
    this.modelId = options.modelId;
    this.#options = options;
    if (options.dialect.deletesCheckpoints) this.deleteWeights = (path) => this.#delete(path);
  }

  async state(): Promise<ModelState> {
    const { http, dialect, signal, outageMs } = this.#options;
    if (!dialect.extensions) {
      throw new BoundaryError("model-server", "unsupported", "this server does not tell a model's state");
    }
    const path = `/ext/v1/models/${encodeURIComponent(this.modelId)}`;
    const json = await http.json({ method: "GET", path, signal, outageMs, headers: this.#headers() });
    const model = parseReply(WorkerModel, json, path);
    return {
      modelId: model.model_id,
      step: model.step,
      weightVersion: model.weight_version,
      lastSeqId: model.last_seq_id,
    };
  }

  async loadWeights(path: string, options: { readonly optimizer: boolean; readonly seqId: number }): Promise<void> {
    await this.#future("load_weights", { path, optimizer: options.optimizer, seq_id: options.seqId });
  }

  forward(data: readonly TrainingDatum[], loss: LossSpec, seqId: number): Promise<ForwardBackwardResult> {
    return this.#losses("forward", "forward_input", data, loss, seqId);
  }

  forwardBackward(data: readonly TrainingDatum[], loss: LossSpec, seqId: number): Promise<ForwardBackwardResult> {
    return this.#losses("forward_backward", "forward_backward_input", data, loss, seqId);
  }

  async optimStep(
    adam: AdamSpec,
    options: { readonly seqId: number; readonly expectStep: number },
  ): Promise<OptimResult> {
    const expected = this.#options.dialect.fenced ? { expect_step: options.expectStep } : {};
    const body = { adam_params: adamParams(adam), seq_id: options.seqId, ...expected };
    const reply = parseReply(OptimStepReply, await this.#future("optim_step", body), "optim_step");
    this.#steps++;
    return {
      step: reply.step ?? options.expectStep + 1,
      metrics: plainNames(reply.metrics ?? {}),
      machine: reply.machine ?? {},
    };
  }

  async saveWeights(name: string, seqId: number): Promise<{ readonly path: string; readonly bytes: number | null }> {
    const json = await this.#future("save_weights", { path: name, seq_id: seqId });
    const { path, bytes } = parseReply(SavedReply, json, "save_weights");
    return { path, bytes: bytes ?? null };
  }

  async saveWeightsForSampler(
    seqId: number,
  ): Promise<{ readonly samplingSessionId: string; readonly weightVersion: number }> {
    if (this.#options.storesForSamplers) return this.#storeForSamplers(seqId);
    const json = await this.#future("save_weights_for_sampler", { seq_id: seqId, sampling_session_seq_id: seqId });
    const reply = parseReply(SamplerReply, json, "save_weights_for_sampler");
    return {
      samplingSessionId: reply.sampling_session_id,
      weightVersion: reply.weight_version ?? (await this.#versionNow()),
    };
  }

  /** Its path stands for the sampling session: whoever can read it can sample it. */
  async #storeForSamplers(
    seqId: number,
  ): Promise<{ readonly samplingSessionId: string; readonly weightVersion: number }> {
    const json = await this.#future("save_weights_for_sampler", { seq_id: seqId, path: `serve-${seqId}` });
    const { path, step } = parseReply(StoredForSamplers, json, "save_weights_for_sampler");
    return { samplingSessionId: path, weightVersion: step };
  }

  async zeroGrad(): Promise<void> {
    const { http, dialect, signal, outageMs } = this.#options;
    if (!dialect.extensions) {
      throw new BoundaryError("model-server", "unsupported", "this server can't drop an accumulated gradient");
    }
    const body = JSON.stringify({ model_id: this.modelId });
    await http.json({ method: "POST", path: "/ext/v1/zero_grad", body, signal, outageMs, headers: this.#headers() });
  }

  /** A model that is gone already is what was wanted. */
  async unload(): Promise<void> {
    try {
      await this.#future("unload_model", {});
    } catch (error) {
      if (!isUnknown(error)) throw error;
    }
  }

  async #delete(path: string): Promise<void> {
    const [modelId = "", ...checkpoint] = path
      .replace(/^tinker:\/\//, "")
      .split("/")
      .map(encodeURIComponent);
    const { http, signal, outageMs } = this.#options;
    const target = `/api/v1/training_runs/${modelId}/checkpoints/${checkpoint.join("/")}`;
    try {
      await http.json({ method: "DELETE", path: target, signal, outageMs, headers: this.#headers() });
    } catch (error) {
      if (!isUnknown(error)) throw error;
    }
  }

  async #versionNow(): Promise<number> {
    return this.#options.dialect.extensions ? (await this.state()).weightVersion : this.#steps;
  }

  async #losses(
    name: "forward" | "forward_backward",
    key: "forward_input" | "forward_backward_input",
    data: readonly TrainingDatum[],
    loss: LossSpec,
    seqId: number,
  ): Promise<ForwardBackwardResult> {
    const head = JSON.stringify({ model_id: this.modelId, seq_id: seqId }).slice(0, -1);
    const body = `${head},"${key}":${lossInput(data, loss, this.#options.dialect)}}`;
    const reply = parseReply(ForwardBackwardReply, await this.#send(name, body), name);
    const outputs = reply.loss_fn_outputs;
    if (outputs.length !== data.length) throw incomplete(name, `${outputs.length} outputs for ${data.length} rows`);
    const logprobs = outputs.map((output, row) => {
      const values = output.logprobs?.data;
      if (!values || values.length !== data[row]?.inputs.length) throw incomplete(name, `row ${row} lacks logprobs`);
      return values;
    });
    return { logprobs, metrics: reply.metrics };
  }

  #future(name: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
    return this.#send(name, JSON.stringify({ model_id: this.modelId, ...body }));
  }

  #send(name: string, body: string): Promise<unknown> {
    const { http, signal, outageMs } = this.#options;
    const once = !this.#options.dialect.deduplicates;
    return awaitFuture(http, { path: `/api/v1/${name}`, body, headers: this.#headers(), signal, outageMs, once });
  }

  #headers(): Readonly<Record<string, string>> {
    return fenceHeaders(this.#options.dialect, this.#options.fence);
  }
}

export const fenceHeaders = (dialect: TinkerDialect, fence: Fence): Readonly<Record<string, string>> =>
  dialect.fenced ? { "x-rolldeck-run": fence.runId, "x-rolldeck-fence": String(fence.token) } : {};

/** SkyRL puts its own domain before the names of its metrics. */
const plainNames = (metrics: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name.replace(/^skyrl\.ai\//, ""), value]));

const incomplete = (name: string, message: string): BoundaryError =>
  new BoundaryError("model-server", "bad_answer", `${name}: ${message}`);
