/**
 * The numbers that mean the same whatever backend trained a step (contracts/shared-metrics): from its stored rows and rollouts,
 * and from nothing else. Whoever has those gets the same bits. Invariants: a number without samples is left out, never 0 and
 * never NaN; the order of rows and rollouts does not matter, to the last bit; how a rollout was split into rows does not matter
 * beyond rounding.
 */
import { type Ending, endingRule, type MaskReason } from "@rolldeck/contracts/endings";
import type { SharedMetricName } from "@rolldeck/contracts/shared-metrics";
import { isScored } from "./group-advantages.ts";

/** As a BatchRow has them: lists have one entry per token, and spans cover them in order. */
export interface SharedRow {
  /** After off-policy corrections; null reason: trained. */
  readonly mask: readonly { readonly count: number; readonly reason: MaskReason | null }[];
  /** Nats; null: not sampled, or not told. */
  readonly samplerLogprobs: readonly (number | null)[];
  /** Nats, before the update, rounded to float32 as they are stored; null: not told. */
  readonly trainerLogprobs: readonly (number | null)[] | null;
}
export interface SharedRollout {
  readonly ending: Ending | null;
  readonly reward: number | null;
  readonly success: boolean | null;
}

/** Sums over a row's trained tokens; d = sampler's − trainer's logprob, where both are known. */
interface RowSums {
  trained: number;
  sampled: number;
  surprise: number;
  paired: number;
  signed: number;
  absolute: number;
  square: number;
  probability: number;
}

/**
 * @param rows of one step's update, sent or not
 * @param rollouts of its groups, without those that were set aside
 */
export function sharedMetrics(
  rows: readonly SharedRow[],
  rollouts: readonly SharedRollout[],
): Partial<Record<SharedMetricName, number>> {
  const sums = rows.map(rowSums);
  const total = (name: keyof RowSums): number => orderedSum(sums.map((row) => row[name]));
  const scored = rollouts.filter(countsInBaseline);
  const paired = total("paired");
  const sampled = total("sampled");
  const values: Record<SharedMetricName, number | null> = {
    "shared/reward": ratio(orderedSum(scored.map(({ reward }) => reward)), scored.length),
    "shared/success": ratio(scored.filter(({ success }) => success === true).length, scored.length),
    "shared/trained-tokens": rows.length > 0 ? total("trained") : null,
    "shared/entropy": ratio(total("surprise"), sampled),
    "shared/mismatch-logprob": ratio(total("absolute"), paired),
    "shared/mismatch-prob": ratio(total("probability"), paired),
    "shared/mismatch-signed": ratio(total("signed"), paired),
    "shared/mismatch-half-square": ratio(total("square") / 2, paired),
  };
  const known = Object.entries(values).filter(([, value]) => value !== null && Number.isFinite(value));
  return Object.fromEntries(known);
}

function rowSums({ mask, samplerLogprobs, trainerLogprobs }: SharedRow): RowSums {
  const sums = { trained: 0, sampled: 0, surprise: 0, paired: 0, signed: 0, absolute: 0, square: 0, probability: 0 };
  let place = 0;
  for (const { count, reason } of mask) {
    const end = place + count;
    if (reason !== null) place = end;
    for (; place < end; place++) addToken(sums, known(samplerLogprobs[place]), known(trainerLogprobs?.[place]));
  }
  return sums;
}

function addToken(sums: RowSums, sampler: number | null, trainer: number | null): void {
  sums.trained += 1;
  if (sampler === null) return;
  sums.sampled += 1;
  sums.surprise -= sampler;
  if (trainer === null) return;
  const difference = sampler - trainer;
  sums.paired += 1;
  sums.signed += difference;
  sums.absolute += Math.abs(difference);
  sums.square += difference * difference;
  sums.probability += Math.abs(Math.exp(trainer) - Math.exp(sampler));
}

const known = (logprob: number | null | undefined): number | null =>
  logprob !== null && logprob !== undefined && Number.isFinite(logprob) ? logprob : null;

const countsInBaseline = (rollout: SharedRollout): rollout is SharedRollout & { readonly reward: number } =>
  rollout.ending !== null && endingRule(rollout.ending).inBaseline && isScored(rollout.reward);

const ratio = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);

/** Floating-point sums depend on their order: this one's is its own. */
const orderedSum = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b).reduce((sum, value) => sum + value, 0);
