/**
 * Reference token losses in float64 with their gradients: what every trainer must reproduce. Token terms are summed; the
 * advantages already carry mask, weight and denominator. With ρ = exp(new − old):
 * IS −ρA · PPO −min(ρA, clip(ρ)A) · dual clip (A < 0) min(PPO, −cA) · CISPO −sg(clip ρ)·A·new.
 */
export interface LossTerm {
  readonly value: number;
  /** d value / d new logprob. */
  readonly gradient: number;
}
export interface ClipBounds {
  /** Bounds of the ratio itself, e.g. 0.8 and 1.28. */
  readonly low: number;
  readonly high: number;
  /** c of the dual clip (arXiv:1912.09729); null = off. */
  readonly dual: number | null;
}
export type TokenLoss = (newLogprob: number, oldLogprob: number, advantage: number, clip: ClipBounds) => LossTerm;

const bounded = (ratio: number, clip: ClipBounds) => Math.min(Math.max(ratio, clip.low), clip.high);

const importanceSampling: TokenLoss = (newLogprob, oldLogprob, advantage) => {
  const value = -Math.exp(newLogprob - oldLogprob) * advantage;
  return { value, gradient: value };
};

const ppo: TokenLoss = (newLogprob, oldLogprob, advantage, clip) => {
  const ratio = Math.exp(newLogprob - oldLogprob);
  const unclipped = -ratio * advantage;
  const clipped = -bounded(ratio, clip) * advantage;
  const pessimistic: LossTerm =
    unclipped >= clipped ? { value: unclipped, gradient: unclipped } : { value: clipped, gradient: 0 };
  if (clip.dual === null || advantage >= 0) return pessimistic;
  const limit = -clip.dual * advantage;
  return pessimistic.value <= limit ? pessimistic : { value: limit, gradient: 0 };
};

const cispo: TokenLoss = (newLogprob, oldLogprob, advantage, clip) => {
  const weight = -bounded(Math.exp(newLogprob - oldLogprob), clip) * advantage;
  return { value: weight * newLogprob, gradient: weight };
};

const crossEntropy: TokenLoss = (newLogprob, _oldLogprob, weight) => ({
  value: -weight * newLogprob,
  gradient: -weight,
});

export const tokenLosses = {
  importance_sampling: importanceSampling,
  ppo,
  cispo,
  cross_entropy: crossEntropy,
} satisfies Record<string, TokenLoss>;
export type TokenLossName = keyof typeof tokenLosses;

export interface SequenceLoss {
  readonly sum: number;
  readonly gradients: readonly number[];
}

/** Summed loss of one sequence; masked positions contribute exactly 0 whatever their logprobs hold. */
export function sequenceLoss(
  name: TokenLossName,
  newLogprobs: readonly number[],
  oldLogprobs: readonly number[],
  mask: readonly number[],
  advantages: readonly number[],
  clip: ClipBounds,
): SequenceLoss {
  let sum = 0;
  const gradients = mask.map((kept, t) => {
    if (kept !== 1) return 0;
    const term = tokenLosses[name](newLogprobs[t] ?? 0, oldLogprobs[t] ?? 0, advantages[t] ?? 0, clip);
    sum += term.value;
    return term.gradient;
  });
  return { sum, gradients };
}
