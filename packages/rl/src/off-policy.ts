/**
 * Corrections for tokens that an older policy (or another engine's arithmetic) sampled: truncated importance weights and
 * sequence masks. ratio = exp(old − rollout), with `old` recomputed by the trainer and `rollout` as sampled.
 * Masked positions are left out by selection, never by multiplication: NaN would leak.
 */

/** min(e^(old − rollout), cap) per token; 0 at masked positions. */
export function tisWeights(
  old: readonly number[],
  rollout: readonly number[],
  mask: readonly number[],
  cap = 2,
): number[] {
  return mask.map((kept, t) => (kept === 1 ? Math.min(Math.exp((old[t] ?? 0) - (rollout[t] ?? 0)), cap) : 0));
}

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
  const ratios = differences.map((difference) => Math.exp(difference));
  return {
    product: Math.exp(sum),
    geometric: Math.exp(differences.length > 0 ? sum / differences.length : 0),
    smallest: ratios.reduce((a, b) => Math.min(a, b), 1),
    largest: ratios.reduce((a, b) => Math.max(a, b), 1),
  };
}

export interface SequenceBounds {
  readonly product?: readonly [low: number, high: number];
  readonly geometric?: readonly [low: number, high: number];
  /** A single token outside drops the sequence. */
  readonly token?: readonly [low: number, high: number];
}
export const defaultSequenceBounds = {
  product: [0.5, 2],
  geometric: [0.99, 1.01],
  token: [1e-4, 100],
} as const satisfies SequenceBounds;

/** True when the sequence stays in training under every bound that is given. */
export function keepsSequence(ratio: SequenceRatio, bounds: SequenceBounds): boolean {
  const inside = (value: number, range: readonly [number, number] | undefined) =>
    range === undefined || (value >= range[0] && value <= range[1]);
  return (
    inside(ratio.product, bounds.product) &&
    inside(ratio.geometric, bounds.geometric) &&
    inside(ratio.smallest, bounds.token) &&
    inside(ratio.largest, bounds.token)
  );
}
