/**
 * A stored row + its trajectory → the wire's datum, shifted by one: inputs = row[:-1], every other array is aligned to
 * row[1:]. The first token of a row is never a target. Conservation is checked here and fails loudly: silence would train
 * nothing, or the wrong tokens, without an error.
 */
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { UpdateRow } from "./build-update.ts";
import { decodeMask } from "./mask-reasons.ts";
import { allTokens, checkRanges, positionsOf, type TrajectoryTokens } from "./trajectory-tokens.ts";

/** What `toDatum` reads of a row; the lists have one entry per token of it. */
export type DatumRow = Pick<UpdateRow, "ranges" | "mask" | "advantage" | "scale"> & {
  /** Factors of the tokens' advantages (importance, age); absent = 1. */
  readonly tokenWeights?: readonly number[];
  /** What the loss's ratio compares with instead of the sampling logprobs. */
  readonly oldLogprobs?: readonly (number | null)[];
  readonly refLogprobs?: readonly (number | null)[];
};

/**
 * advantages = advantage · scale · token weight where the mask is 1, else 0; logprobs = as sampled (or `oldLogprobs`) where
 * the mask is 1, else 0.0 (the wire needs a number; storage keeps null).
 * @throws RangeError when ids, mask and logprobs do not fit each other
 */
export function toDatum(row: DatumRow, trajectory: TrajectoryTokens): TrainingDatum {
  const tokens = allTokens(trajectory.segments);
  checkRanges(row.ranges, tokens.length);
  const positions = [...positionsOf(row.ranges)];
  const mask = decodeMask(row.mask).map((reason) => (reason === null ? 1 : 0));
  if (mask.length !== positions.length) {
    throw new RangeError(`the mask covers ${mask.length} tokens, the row has ${positions.length}`);
  }
  if (mask[0] === 1) throw new RangeError("a row's first token has no context and cannot be trained");
  const sampled = sampledLogprobs(trajectory);
  const old = row.oldLogprobs ?? positions.map((position) => sampled[position] ?? null);
  const ids = positions.map((position) => tokens[position] ?? 0);
  const weight = row.advantage * row.scale;
  const read = (logprobs: readonly (number | null)[], what: string): number[] =>
    mask.slice(1).map((kept, t) => (kept === 1 ? readLogprob(logprobs[t + 1] ?? null, t + 1, what) : 0));
  const datum: TrainingDatum = {
    inputs: ids.slice(0, -1),
    targets: ids.slice(1),
    weights: mask.slice(1),
    logprobs: read(old, row.oldLogprobs === undefined ? "sampling" : "trainer"),
    advantages: mask.slice(1).map((kept, t) => (kept === 1 ? weight * (row.tokenWeights?.[t + 1] ?? 1) : 0)),
    scale: row.scale,
    ...(row.refLogprobs === undefined ? {} : { refLogprobs: read(row.refLogprobs, "reference") }),
  };
  checkConservation(datum, mask, weight);
  return datum;
}

/** Logprob at each sampled position of the trajectory; null elsewhere. */
function sampledLogprobs({ segments }: TrajectoryTokens): (number | null)[] {
  return segments.flatMap((segment) =>
    segment.tokens.map((_, offset) => (segment.origin === "sampled" ? (segment.logprobs?.[offset] ?? null) : null)),
  );
}

function readLogprob(logprob: number | null, place: number, what: string): number {
  if (logprob === null || !Number.isFinite(logprob)) {
    throw new RangeError(`token ${place} of a row is trained but has no ${what} logprob`);
  }
  return logprob;
}

function checkConservation(datum: TrainingDatum, mask: readonly number[], weight: number): void {
  const { inputs, targets, logprobs, advantages, weights } = datum;
  const lengths = new Set([inputs.length, targets.length, logprobs.length, advantages.length, weights.length]);
  if (lengths.size !== 1) throw new RangeError(`the arrays of a datum differ in length: ${[...lengths].join(", ")}`);
  if (!Number.isFinite(weight)) throw new RangeError(`advantage × scale is not finite: ${weight}`);
  const trained = mask.filter((kept) => kept === 1).length;
  const nonZero = advantages.filter((advantage) => advantage !== 0).length;
  if (weight !== 0 && nonZero !== trained) {
    throw new RangeError(`${trained} tokens are trained but ${nonZero} have an advantage`);
  }
}
