/**
 * Corrections for tokens that an older policy (or another engine's arithmetic) sampled: truncated importance weights, and masks
 * of sequences and tokens (Yao et al., "Your efficient RL framework secretly brings you off-policy RL training", 2025).
 * ratio = exp(old − rollout), with `old` recomputed by the trainer and `rollout` as sampled; differences are clamped to ±20.
 * Masked positions are left out by selection, never by multiplication: NaN would leak.
 */

const logRatioLimit = 20;
const clampedExp = (difference: number): number =>
  Math.exp(Math.max(-logRatioLimit, Math.min(logRatioLimit, difference)));

const tokenRatio = (old: readonly number[], rollout: readonly number[], t: number): number =>
  clampedExp((old[t] ?? 0) - (rollout[t] ?? 0));

/** min(e^(old − rollout), cap) per token; 0 at masked positions. */
export function tisWeights(
  old: readonly number[],
  rollout: readonly number[],
  mask: readonly number[],
  cap = 2,
): number[] {
  return mask.map((kept, t) => (kept === 1 ? Math.min(tokenRatio(old, rollout, t), cap) : 0));
}

/** The product of a whole sequence's ratios, at most `cap`: one weight for all of its tokens; 1 for an empty one. */
export const sequenceTisWeight = (
  old: readonly number[],
  rollout: readonly number[],
  mask: readonly number[],
  cap = 2,
): number => Math.min(sequenceRatio(old, rollout, mask).product, cap);

export interface SequenceRatio {
  /** Π ratio over the unmasked tokens. */
  readonly product: number;
  /** Its |tokens|-th root; 1 for an empty sequence. */
  readonly geometric: number;
  readonly smallest: number;
  readonly largest: number;
}

/** Ratios of a whole sequence; `geometric` is also the GSPO sequence ratio (arXiv:2507.18071). */
export function sequenceRatio(
  old: readonly number[],
  rollout: readonly number[],
  mask: readonly number[],
): SequenceRatio {
  const differences = mask.flatMap((kept, t) => (kept === 1 ? [(old[t] ?? 0) - (rollout[t] ?? 0)] : []));
  const sum = differences.reduce((total, difference) => total + difference, 0);
  const ratios = differences.map(clampedExp);
  return {
    product: clampedExp(sum),
    geometric: clampedExp(differences.length > 0 ? sum / differences.length : 0),
    smallest: ratios.reduce((a, b) => Math.min(a, b), 1),
    largest: ratios.reduce((a, b) => Math.max(a, b), 1),
  };
}

/** Inclusive; null = no bound. */
export type RatioBounds = readonly [low: number, high: number] | null;

export interface SequenceBounds {
  readonly product?: RatioBounds;
  readonly geometric?: RatioBounds;
  /** A single token outside drops the sequence. */
  readonly token?: RatioBounds;
}
export const defaultSequenceBounds = {
  product: [0.5, 2],
  geometric: [0.99, 1.01],
  token: [1e-4, 100],
} as const satisfies SequenceBounds;

const inside = (value: number, bounds: RatioBounds | undefined): boolean =>
  bounds === undefined || bounds === null || (value >= bounds[0] && value <= bounds[1]);

/** True when the sequence stays in training under every bound that is given. */
export const keepsSequence = (ratio: SequenceRatio, bounds: SequenceBounds): boolean =>
  inside(ratio.product, bounds.product) &&
  inside(ratio.geometric, bounds.geometric) &&
  inside(ratio.smallest, bounds.token) &&
  inside(ratio.largest, bounds.token);

/** 1 where a trained token's own ratio is inside the bounds. */
export const keptTokens = (
  old: readonly number[],
  rollout: readonly number[],
  mask: readonly number[],
  bounds: RatioBounds,
): number[] => mask.map((kept, t) => (kept === 1 && inside(tokenRatio(old, rollout, t), bounds) ? 1 : 0));
