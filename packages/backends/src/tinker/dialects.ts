/**
 * Where servers that speak the Tinker protocol differ, in one table. Code reads a row of it and never asks for a server's name.
 * A config says which row it means: what matters most, how losses are added up, can't be seen from outside, and a wrong guess would
 * train with other numbers and no error.
 */
import type { ModelRecovery } from "@rolldeck/contracts/ports/backend";

export interface TinkerDialect {
  /**
   * What the server makes of a request's losses. `sum`: adds them. `mean-of-means`: divides each datum by the sum of its
   * weights, and the update by its number of datums; the client undoes both, so that callers always get sums.
   */
  readonly reduction: "sum" | "mean-of-means";
  /** `POST /ext/v1/sample` answers at once; otherwise asample gives a future. */
  readonly oneCallSampling: boolean;
  /** `/ext/v1`: info, model state, zero_grad, and weight versions in samples. */
  readonly extensions: boolean;
  /** Sends who holds the run's model, and the step it expects; an older holder is refused. */
  readonly fenced: boolean;
  /** How a model is brought back after a doubt. */
  readonly recovery: ModelRecovery;
  /**
   * A training request that comes twice under one number is applied once. Where not, one whose answer did not come is never sent
   * again: the call fails, and the model is in doubt.
   */
  readonly deduplicates: boolean;
  /** A new model may find the gradient of one that was unloaded before its step: it is dropped before anything else. */
  readonly inheritsGradient: boolean;
  /** `DELETE …/checkpoints/…` exists. */
  readonly deletesCheckpoints: boolean;
  /** Loss tensors beside the targets that reinforcement-learning losses take; masked tokens have advantage 0 everywhere. */
  readonly sendsWeightsWithAdvantages: boolean;
  /** Settings of a loss that may be sent; null = all. */
  readonly lossSettings: readonly string[] | null;
  /** Losses the server has. */
  readonly losses: readonly string[];
}

export const dialects = {
  /** Our GPU worker. */
  rolldeck: {
    reduction: "sum",
    oneCallSampling: true,
    extensions: true,
    fenced: true,
    recovery: "by-step",
    deduplicates: true,
    inheritsGradient: false,
    deletesCheckpoints: true,
    sendsWeightsWithAdvantages: true,
    lossSettings: null,
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo", "gspo"],
  },
  /** SkyRL's Tinker server with its JAX backend, the one that runs without a GPU; read at version 0.3.0. */
  skyrl: {
    reduction: "mean-of-means",
    oneCallSampling: false,
    extensions: false,
    fenced: false,
    recovery: "by-checkpoint",
    deduplicates: false,
    inheritsGradient: true,
    deletesCheckpoints: false,
    sendsWeightsWithAdvantages: true,
    lossSettings: ["clip_low_threshold", "clip_high_threshold"],
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo"],
  },
  /** The hosted service, as its SDK and documents describe it. */
  hosted: {
    reduction: "sum",
    oneCallSampling: false,
    extensions: false,
    fenced: false,
    recovery: "by-checkpoint",
    deduplicates: true,
    inheritsGradient: false,
    deletesCheckpoints: true,
    sendsWeightsWithAdvantages: false,
    lossSettings: ["clip_low_threshold", "clip_high_threshold"],
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"],
  },
} as const satisfies Record<string, TinkerDialect>;
export type TinkerDialectName = keyof typeof dialects;
