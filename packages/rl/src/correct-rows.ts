/**
 * What the trainer's own logprobs say about stored rows before they are trained: which rollouts and tokens are too far from the
 * policy that sampled them, and what the others weigh. Invariants: a rollout has one fate over all of its rows; only
 * trained tokens enter a ratio; a token is never trained because of a correction, only left out; weights are finite and > 0
 * where the mask is 1 and 0 elsewhere; the order of rows does not matter.
 */
import type { OffPolicyConfig } from "@rolldeck/contracts/algorithm-config";
import type { TokenMask } from "./mask-reasons.ts";
import {
  defaultSequenceBounds,
  keepsSequence,
  keptTokens,
  type RatioBounds,
  sequenceRatio,
  sequenceTisWeight,
  tisWeights,
} from "./off-policy.ts";

/** One stored row; every list has the row's length. */
export interface UncorrectedRow {
  readonly rolloutId: string;
  readonly mask: readonly TokenMask[];
  /** As sampled; null where not sampled. */
  readonly logprobs: readonly (number | null)[];
  /** The trainer's, before the update; null where it has none (a row's first token, rows that were not sent). */
  readonly trainerLogprobs: readonly (number | null)[];
  /** Policy version that sampled each token; null where not sampled. */
  readonly versions: readonly (number | null)[];
}
export interface RowCorrection {
  readonly mask: readonly TokenMask[];
  /** What each token's advantage is multiplied by. */
  readonly weights: readonly number[];
}

/** The trained tokens of a rollout's rows in a row; ratios are of these. */
interface Sequence {
  readonly trainer: number[];
  readonly sampler: number[];
  readonly mask: number[];
}

/**
 * In SkyRL's order: sequences with an outlier, single tokens, importance weights of what is left, sequences by their ratio.
 * @param learnerVersion the version that the update starts from, which a token's age is counted to
 * @throws RangeError when a token that is to be trained has no finite logprob of both kinds
 */
export function correctRows(
  rows: readonly UncorrectedRow[],
  offPolicy: OffPolicyConfig,
  learnerVersion: number,
): RowCorrection[] {
  const byRollout = new Map<string, UncorrectedRow[]>();
  for (const row of rows) byRollout.set(row.rolloutId, [...(byRollout.get(row.rolloutId) ?? []), row]);
  const corrections = new Map<UncorrectedRow, RowCorrection>();
  for (const own of byRollout.values()) {
    const kept = keptOf(joined(own), offPolicy);
    let place = 0;
    for (const row of own) {
      const end = place + row.mask.length;
      corrections.set(row, rowCorrection(row, kept.weights.slice(place, end), offPolicy, learnerVersion));
      place = end;
    }
  }
  return rows.map((row) => corrections.get(row) ?? { mask: row.mask, weights: row.mask.map(() => 0) });
}

function joined(rows: readonly UncorrectedRow[]): Sequence {
  const sequence: Sequence = { trainer: [], sampler: [], mask: [] };
  for (const { mask, trainerLogprobs, logprobs, rolloutId } of rows) {
    for (const [t, reason] of mask.entries()) {
      const [trainer, sampler] = [trainerLogprobs[t] ?? null, logprobs[t] ?? null];
      if (reason === null && (!isLogprob(trainer) || !isLogprob(sampler)))
        throw new RangeError(`a token of rollout ${rolloutId} is trained but lacks a finite logprob`);
      sequence.trainer.push(trainer ?? 0);
      sequence.sampler.push(sampler ?? 0);
      sequence.mask.push(reason === null ? 1 : 0);
    }
  }
  return sequence;
}

const isLogprob = (value: number | null): value is number => value !== null && Number.isFinite(value);

/** Importance weight of each token; 0 where it is left out. */
function keptOf({ trainer, sampler, mask }: Sequence, offPolicy: OffPolicyConfig): { weights: number[] } {
  const { weight, weightCap, sequenceMask } = offPolicy;
  const nothing = { weights: mask.map(() => 0) };
  const outliers = bounds(offPolicy.outlierLow, offPolicy.outlierHigh);
  if (!keepsSequence(sequenceRatio(trainer, sampler, mask), { token: outliers })) return nothing;
  const left = keptTokens(trainer, sampler, mask, bounds(offPolicy.tokenLow, offPolicy.tokenHigh));
  if (sequenceMask !== "none") {
    const [low, high] = defaultSequenceBounds[sequenceMask];
    const range: RatioBounds = [offPolicy.sequenceLow ?? low, offPolicy.sequenceHigh ?? high];
    if (!keepsSequence(sequenceRatio(trainer, sampler, left), { [sequenceMask]: range })) return nothing;
  }
  if (weight === "token") return { weights: tisWeights(trainer, sampler, left, weightCap) };
  const whole = weight === "sequence" ? sequenceTisWeight(trainer, sampler, left, weightCap) : 1;
  return { weights: left.map((kept) => kept * whole) };
}

const bounds = (low: number | null, high: number | null): RatioBounds =>
  low === null && high === null ? null : [low ?? 0, high ?? Number.POSITIVE_INFINITY];

function rowCorrection(
  row: UncorrectedRow,
  weights: readonly number[],
  { stalenessDecay }: OffPolicyConfig,
  learnerVersion: number,
): RowCorrection {
  const age = (t: number): number => Math.max(learnerVersion - (row.versions[t] ?? learnerVersion), 0);
  return {
    mask: row.mask.map((reason, t) => (reason === null && weights[t] === 0 ? "off-policy" : reason)),
    weights: weights.map((weight, t) => (weight === 0 ? 0 : weight * stalenessDecay ** age(t))),
  };
}
