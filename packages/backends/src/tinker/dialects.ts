/**
 * Where servers that speak the Tinker protocol differ, in one table. Code reads a row of it and never asks for a server's name.
 */
export interface TinkerDialect {
  /**
   * What the server makes of a request's losses. `sum`: adds them. `mean-of-means`: divides each datum by the sum of its
   * weights and the request by its number of datums; the client undoes both, so that callers always get sums.
   */
  readonly reduction: "sum" | "mean-of-means";
  /** `POST /ext/v1/sample` answers at once; otherwise asample gives a future. */
  readonly oneCallSampling: boolean;
  /** `/ext/v1`: info, model state, zero_grad, and weight versions in samples. */
  readonly extensions: boolean;
  /** Sends who holds the run's model, and the step it expects; an older holder is refused. */
  readonly fenced: boolean;
  /** Loss tensors beside the targets that reinforcement-learning losses take; masked tokens have advantage 0 everywhere. */
  readonly sendsWeightsWithAdvantages: boolean;
  /** Settings of a loss that may be sent; null = all. */
  readonly lossSettings: readonly string[] | null;
  /** LoRA rank of a new model; 0 = all weights are trained. */
  readonly rank: number;
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
    sendsWeightsWithAdvantages: true,
    lossSettings: null,
    rank: 0,
    losses: ["cross_entropy", "importance_sampling", "ppo"],
  },
  /** SkyRL's Tinker server with its JAX backend, the one that runs without a GPU. */
  skyrl: {
    reduction: "mean-of-means",
    oneCallSampling: false,
    extensions: false,
    fenced: false,
    sendsWeightsWithAdvantages: true,
    lossSettings: ["clip_low_threshold", "clip_high_threshold"],
    rank: 32,
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo"],
  },
  hosted: {
    reduction: "sum",
    oneCallSampling: false,
    extensions: false,
    fenced: false,
    sendsWeightsWithAdvantages: false,
    lossSettings: ["clip_low_threshold", "clip_high_threshold"],
    rank: 32,
    losses: ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"],
  },
} as const satisfies Record<string, TinkerDialect>;
export type TinkerDialectName = keyof typeof dialects;
