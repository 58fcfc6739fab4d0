/**
 * A small run that outlives its GPU worker, by the product's rules: finished rollouts and the paths of checkpoints are kept on this
 * side, a model is made again from its newest checkpoint, and the updates since then are applied again from the same rollouts.
 */
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import type { StepBackend, TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import { fixedPrompt, type SampleResult } from "@rolldeck/contracts/ports/sampler";

export interface RunShape {
  readonly seed: number;
  /** Rollouts of a step, a multiple of `groupSize`. */
  readonly rollouts: number;
  /** Steps from one checkpoint to the next. */
  readonly checkpointEvery: number;
}
interface Server {
  readonly url: string;
  readonly apiKey: string;
}

const groupSize = 8;
const promptTokens = 24;
const maxTokens = 64;
const adam = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 1 };
// Several micro-batches a step, also of a small one.
const loss = { name: "importance_sampling", config: { micro_batch_tokens: 512 } };

export class StoredRun {
  readonly #shape: RunShape;
  /** By step, from 1; what a worker's death leaves open is asked for again. */
  readonly #rollouts = new Map<number, (SampleResult | undefined)[]>();
  #checkpoint: { readonly path: string; readonly step: number } | null = null;
  /** Updates that were answered. */
  #applied = 0;
  #fence = 0;
  #open: { readonly backend: StepBackend; readonly model: TrainableModel } | null = null;
  #seqId = 0;

  constructor(shape: RunShape) {
    this.#shape = shape;
  }

  /** Opens the run on a worker: from the base at first, else from where it was. @returns updates applied again */
  async open(server: Server): Promise<number> {
    await this.close();
    const backend = connect(server);
    this.#fence++;
    this.#seqId = 0;
    const { seed } = this.#shape;
    const fence = { runId: "resumed", token: this.#fence };
    const model = await backend.createModel({ baseModel: "policy", seed, fence });
    this.#open = { backend, model };
    const from = this.#checkpoint;
    if (from) await model.loadWeights(from.path, { optimizer: true, seqId: ++this.#seqId });
    for (let step = (from?.step ?? 0) + 1; step <= this.#applied; step++)
      await this.#update(model, step, () => ++this.#seqId);
    return this.#applied - (from?.step ?? 0);
  }

  /** Goes on to the end of step `last`. @param between hears of each gradient that was answered, before its optim_step */
  async advance(last: number, between: () => void = () => undefined): Promise<void> {
    const { model } = this.#opened();
    while (this.#applied < last) {
      const step = this.#applied + 1;
      await this.#sample(step);
      await this.#update(model, step, () => ++this.#seqId, between);
      this.#applied = step;
      if (step % this.#shape.checkpointEvery !== 0) continue;
      const { path } = await model.saveWeights(`step-${step}`, ++this.#seqId);
      this.#checkpoint = { path, step };
    }
  }

  /** @returns the path of a checkpoint of now */
  async save(name: string): Promise<string> {
    return (await this.#opened().model.saveWeights(name, ++this.#seqId)).path;
  }

  /** The same rollouts on a model that nobody disturbs. @returns paths of checkpoints before the first update and after the last */
  async undisturbed(server: Server): Promise<{ readonly start: string; readonly end: string }> {
    const backend = connect(server);
    try {
      const fence = { runId: "undisturbed", token: 1 };
      const model = await backend.createModel({ baseModel: "policy", seed: this.#shape.seed, fence });
      let seqId = 0;
      const start = await model.saveWeights("start", ++seqId);
      for (let step = 1; step <= this.#applied; step++) await this.#update(model, step, () => ++seqId);
      return { start: start.path, end: (await model.saveWeights("end", ++seqId)).path };
    } finally {
      await backend.close();
    }
  }

  async close(): Promise<void> {
    await this.#open?.backend.close();
    this.#open = null;
  }

  #opened(): { readonly backend: StepBackend; readonly model: TrainableModel } {
    if (this.#open === null) throw new Error("the run is not open");
    return this.#open;
  }

  async #sample(step: number): Promise<void> {
    const rollouts = this.#rollouts.get(step) ?? new Array<undefined>(this.#shape.rollouts).fill(undefined);
    this.#rollouts.set(step, rollouts);
    const { backend, model } = this.#opened();
    const sampler = backend.sampler(await model.saveWeightsForSampler(++this.#seqId));
    const asked = rollouts.map(async (known, index) => {
      if (known) return;
      rollouts[index] = await sampler.sample(
        {
          affinityKey: `rollout-${index}`,
          prompt: fixedPrompt(this.#prompt(step, index)),
          tools: [],
          maxTokens,
          temperature: 1,
          topP: 1,
          topK: -1,
          seed: this.#shape.seed + 1_000 * step + index,
          stopTokens: [259],
        },
        // One signal per rollout, as in the product.
        new AbortController().signal,
      );
    });
    // All of them, so that none is in flight when the next attempt begins.
    const failed = (await Promise.allSettled(asked)).find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  }

  async #update(model: TrainableModel, step: number, seqId: () => number, between?: () => void): Promise<void> {
    await model.forwardBackward(this.#rows(step), loss, seqId());
    between?.();
    await model.optimStep(adam, { seqId: seqId(), expectStep: step - 1 });
  }

  /** One prompt a group. */
  #prompt(step: number, index: number): number[] {
    const start = this.#shape.seed + 31 * step + 7 * Math.floor(index / groupSize);
    return Array.from({ length: promptTokens }, (_, at) => (start + at * at) % 128);
  }

  /** The reward is the share of sampled tokens below 128; the advantage its distance from the group's mean. */
  #rows(step: number): TrainingDatum[] {
    const rollouts = (this.#rollouts.get(step) ?? []).filter((rollout) => rollout !== undefined);
    const rewards = rollouts.map(({ tokens }) => tokens.filter((token) => token < 128).length / tokens.length);
    const trained = rollouts.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return rollouts.map(({ tokens, logprobs }, index) => {
      const group = rewards.slice(index - (index % groupSize)).slice(0, groupSize);
      const mean = group.reduce((sum, reward) => sum + reward, 0) / group.length;
      const advantage = ((rewards[index] ?? 0) - mean) / trained;
      const row = [...this.#prompt(step, index), ...tokens];
      const masked = new Array<number>(promptTokens - 1).fill(0);
      return {
        inputs: row.slice(0, -1),
        targets: row.slice(1),
        logprobs: [...masked, ...(logprobs ?? [])],
        advantages: [...masked, ...tokens.map(() => advantage)],
        weights: [...masked, ...tokens.map(() => 1)],
      };
    });
  }
}

/** A worker that died is not waited for: its failures are what is measured. */
const connect = (server: Server): StepBackend =>
  connectTinker({ ...server, dialect: "rolldeck", trainingOutageMs: 0, samplingOutageMs: 0 });
