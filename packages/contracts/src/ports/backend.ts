/**
 * A step backend hosts inference and the update (our GPU worker, SkyRL's Tinker server, the hosted service).
 * Losses are summed; the control plane computes every denominator. Training requests carry a model-wide `seqId`,
 * contiguous from 1, that the caller has committed before sending.
 */
import type { Sampler } from "./sampler.ts";

export interface BackendInfo {
  readonly bootId: string;
  readonly device: string;
  readonly models: readonly { readonly name: string; readonly parameters: number; readonly maxContextTokens: number }[];
  readonly losses: readonly string[];
}

/** What an engine bears at the moment it is asked. */
export interface EngineReading {
  /** Requests it works on. */
  readonly running: number;
  /** Requests that wait inside it for room. */
  readonly waiting: number;
  /** Used share of the key-value cache, 0–1; of several replicas the fullest one's. */
  readonly cacheUse: number;
}

/** One training row, already shifted: `inputs` = sequence[:-1], every other array aligned to sequence[1:]. */
export interface TrainingDatum {
  readonly inputs: readonly number[];
  readonly targets: readonly number[];
  /** Sampling logprobs; 0 where masked. */
  readonly logprobs: readonly number[];
  /** Advantage × weight ÷ denominator per token; 0 where masked. */
  readonly advantages: readonly number[];
  /** 1 where trained. For cross_entropy these are the weights. */
  readonly weights: readonly number[];
  /**
   * 1 ÷ denominator, which `advantages` contain already: what other terms of the loss (KL, entropy) are multiplied by.
   * Absent = 1.
   */
  readonly scale?: number;
  /** A reference policy's logprobs of the targets; 0 where masked. Needed by a loss with a KL term. */
  readonly refLogprobs?: readonly number[];
}
export interface LossSpec {
  readonly name: string;
  readonly config: Readonly<Record<string, number>>;
  /** Data of the whole update where it takes several requests; absent = this request has them all. Some servers take means. */
  readonly datums?: number;
}
export interface AdamSpec {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  /** 0 = no clipping. */
  readonly gradClipNorm: number;
}
export interface ForwardBackwardResult {
  /** Per datum, trainer logprobs of the targets. */
  readonly logprobs: readonly (readonly number[])[];
  /** Names with unit suffix as the protocol gives them (`loss:sum`). */
  readonly metrics: Readonly<Record<string, number>>;
}
export interface OptimResult {
  readonly step: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** What the server's machine did since the step before, by the server's names; empty where it does not tell. */
  readonly machine: Readonly<Record<string, number>>;
}
export interface ModelState {
  readonly modelId: string;
  readonly step: number;
  readonly weightVersion: number;
  readonly lastSeqId: number;
}

export interface TrainableModel {
  readonly modelId: string;
  /** @throws BoundaryError model-server/unsupported where models are recovered `by-checkpoint`; so does `zeroGrad` */
  state(): Promise<ModelState>;
  loadWeights(path: string, options: { readonly optimizer: boolean; readonly seqId: number }): Promise<void>;
  forward(data: readonly TrainingDatum[], loss: LossSpec, seqId: number): Promise<ForwardBackwardResult>;
  forwardBackward(data: readonly TrainingDatum[], loss: LossSpec, seqId: number): Promise<ForwardBackwardResult>;
  /** `expectStep`: the model's step before this update; a mismatch is a 409 and nothing is applied. */
  optimStep(adam: AdamSpec, options: { readonly seqId: number; readonly expectStep: number }): Promise<OptimResult>;
  /** `bytes`: size of what was stored; null where the server does not tell. */
  saveWeights(name: string, seqId: number): Promise<{ readonly path: string; readonly bytes: number | null }>;
  /** Returns once the engine serves the newest weights. `weightVersion` is what samples will carry. */
  saveWeightsForSampler(seqId: number): Promise<{ readonly samplingSessionId: string; readonly weightVersion: number }>;
  zeroGrad(): Promise<void>;
  /** Frees the model's memory on the server; what it saved stays. Absent where a server has no such call. */
  unload?(): Promise<void>;
  /** Deletes what `saveWeights` stored under this path; one that is gone already is no error. Absent as `unload`. */
  deleteWeights?(path: string): Promise<void>;
}

/**
 * What brings a model back after a failure that leaves open whether a request was applied. `by-step`: the server tells a model's step
 * and refuses an update that does not fit it. `by-checkpoint`: it tells neither; the model is made again from its newest checkpoint
 * that was recorded before the doubt, and stored rows are replayed.
 */
export type ModelRecovery = "by-step" | "by-checkpoint";

export interface StepBackend {
  readonly recovery: ModelRecovery;
  info(signal?: AbortSignal): Promise<BackendInfo>;
  /** What the engine that samples bears now; null where the server does not tell. Absent: its kind never does. */
  load?(signal?: AbortSignal): Promise<EngineReading | null>;
  /** Opens a session and a model. `fence` rises with every adoption: an older holder gets 409 from then on. */
  createModel(options: {
    readonly baseModel: string;
    readonly seed: number;
    /** Of the adapter that is trained; absent or 0 = all weights are. */
    readonly loraRank?: number;
    readonly fence: { readonly runId: string; readonly token: number };
    /** Ends every call of the returned model. */
    readonly signal?: AbortSignal;
  }): Promise<TrainableModel>;
  /** A model that lives on the server already (same boot id). */
  adoptModel(options: {
    readonly modelId: string;
    readonly fence: { readonly runId: string; readonly token: number };
    /** Ends every call of the returned model. */
    readonly signal?: AbortSignal;
  }): TrainableModel;
  /**
   * `policyVersion`: what a sample carries when the server does not say which weights drew it. `onWait`: hears when a sample is
   * held up, until when (wall clock, milliseconds) and by what.
   */
  sampler(options: {
    readonly samplingSessionId: string;
    readonly policyVersion?: number;
    readonly onWait?: (wait: { readonly untilMs: number; readonly reason: string }) => void;
  }): Sampler;
  /**
   * Logprobs of rows of tokens under stored weights, at the temperature they were sampled at: per row one for each token after the
   * first, null where there is no finite number. Absent where a server has no such call.
   */
  score?(options: {
    readonly path: string;
    readonly rows: readonly (readonly number[])[];
    readonly temperature: number;
    readonly signal?: AbortSignal;
  }): Promise<(number | null)[][]>;
  close(): Promise<void>;
}
