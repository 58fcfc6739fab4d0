/**
 * Reference losses in float64 with their gradients: what every trainer must reproduce. Token terms are summed; the advantages
 * already carry mask, weight and denominator. Invariants: a masked token contributes exactly 0 whatever its logprobs hold;
 * log ratios are clamped to ±20, beyond which a term has no gradient, so that nothing overflows.
 */
export interface ClipBounds {
  /** Bounds of the ratio itself, e.g. 0.8 and 1.28. */
  readonly low: number;
  readonly high: number;
  /** c of the dual clip (arXiv:1912.09729); null = off. Only `ppo` has one. */
  readonly dual: number | null;
}
/** One training row, each array of its length. */
export interface LossRow {
  readonly newLogprobs: readonly number[];
  /** Of the policy that the ratio compares with. */
  readonly oldLogprobs: readonly number[];
  /** 1 where trained. */
  readonly mask: readonly number[];
  readonly advantages: readonly number[];
}
export interface SequenceLoss {
  readonly sum: number;
  readonly values: readonly number[];
  /** d sum / d new logprob. */
  readonly gradients: readonly number[];
}

interface Term {
  readonly value: number;
  readonly gradient: number;
}
interface Token {
  readonly newLogprob: number;
  /** new / old, of this token. */
  readonly ratio: Term;
  /** The geometric mean of the row's ratios. */
  readonly rowRatio: number;
  readonly advantage: number;
}
type TokenLoss = (token: Token, clip: ClipBounds) => Term;

const logRatioLimit = 20;

/** e^(new − old) and its slope. */
function importanceRatio(newLogprob: number, oldLogprob: number): Term {
  const gap = newLogprob - oldLogprob;
  const value = Math.exp(Math.max(-logRatioLimit, Math.min(logRatioLimit, gap)));
  return { value, gradient: Math.abs(gap) > logRatioLimit ? 0 : value };
}

const within = (ratio: number, clip: ClipBounds) => Math.min(Math.max(ratio, clip.low), clip.high);

/** max(−ratio·A, −clip(ratio)·A): the clipped term has no slope. */
function pessimistic(ratio: Term, advantage: number, clip: ClipBounds): Term {
  const unclipped = -ratio.value * advantage;
  const clipped = -within(ratio.value, clip) * advantage;
  return unclipped >= clipped
    ? { value: unclipped, gradient: -ratio.gradient * advantage }
    : { value: clipped, gradient: 0 };
}

/** −ρ·A. */
const importanceSampling: TokenLoss = ({ ratio, advantage }) => ({
  value: -ratio.value * advantage,
  gradient: -ratio.gradient * advantage,
});

/** −min(ρA, clip(ρ)A); with the dual clip never more than −cA where A < 0. */
const ppo: TokenLoss = ({ ratio, advantage }, clip) => {
  const term = pessimistic(ratio, advantage, clip);
  if (clip.dual === null || advantage >= 0) return term;
  const limit = -clip.dual * advantage;
  return term.value <= limit ? term : { value: limit, gradient: 0 };
};

/** −sg(clip ρ)·A·new (arXiv:2506.13585): a clipped token keeps a bounded gradient. */
const cispo: TokenLoss = ({ newLogprob, ratio, advantage }, clip) => {
  const weight = -within(ratio.value, clip) * advantage;
  return { value: weight * newLogprob, gradient: weight };
};

/** PPO with the row's ratio s = e^mean(new − old) in place of each token's: sg(s)·new/sg(new) (GSPO-token, arXiv:2507.18071). */
const gspo: TokenLoss = ({ rowRatio, advantage }, clip) =>
  pessimistic({ value: rowRatio, gradient: rowRatio }, advantage, clip);

/** −w·new; the weight comes as the advantage. */
const crossEntropy: TokenLoss = ({ newLogprob, advantage }) => ({
  value: -advantage * newLogprob,
  gradient: -advantage,
});

export const tokenLosses = {
  importance_sampling: importanceSampling,
  ppo,
  cispo,
  gspo,
  cross_entropy: crossEntropy,
} satisfies Record<string, TokenLoss>;
export type LossName = keyof typeof tokenLosses;

/** Summed loss of one row. */
export function sequenceLoss(name: LossName, row: LossRow, clip: ClipBounds): SequenceLoss {
  const { newLogprobs, oldLogprobs, mask, advantages } = row;
  const gaps = mask.flatMap((kept, t) => (kept === 1 ? [(newLogprobs[t] ?? 0) - (oldLogprobs[t] ?? 0)] : []));
  const meanGap = gaps.reduce((sum, gap) => sum + gap, 0) / Math.max(gaps.length, 1);
  const rowRatio = Math.exp(Math.max(-logRatioLimit, Math.min(logRatioLimit, meanGap)));
  const terms = mask.map((kept, t): Term => {
    if (kept !== 1) return { value: 0, gradient: 0 };
    const newLogprob = newLogprobs[t] ?? 0;
    const ratio = importanceRatio(newLogprob, oldLogprobs[t] ?? 0);
    return tokenLosses[name]({ newLogprob, ratio, rowRatio, advantage: advantages[t] ?? 0 }, clip);
  });
  return {
    sum: terms.reduce((sum, { value }) => sum + value, 0),
    values: terms.map(({ value }) => value),
    gradients: terms.map(({ gradient }) => gradient),
  };
}
