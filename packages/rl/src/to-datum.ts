/**
 * A stored row + its trajectory → the wire's datum, shifted by one: inputs = row[:-1], every other array is aligned to
 * row[1:]. The first token of a row is never a target. Conservation is checked here and fails loudly: silence would train
 * nothing, or the wrong tokens, without an error.
 */
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { UpdateRow } from "./build-update.ts";
import { decodeMask } from "./mask-reasons.ts";
import { allTokens, checkRanges, positionsOf, type TrajectoryTokens } from "./trajectory-tokens.ts";

/** What `toDatum` reads of a row. */
export type DatumRow = Pick<UpdateRow, "ranges" | "mask" | "advantage" | "scale">;

/**
 * advantages = advantage · scale where the mask is 1, else 0; logprobs = as sampled where the mask is 1, else 0.0 (the
 * wire needs a number; storage keeps null).
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
  const ids = positions.map((position) => tokens[position] ?? 0);
  const weight = row.advantage * row.scale;
  const datum: TrainingDatum = {
    inputs: ids.slice(0, -1),
    targets: ids.slice(1),
    weights: mask.slice(1),
    logprobs: positions.slice(1).map((position, t) => (mask[t + 1] === 1 ? readLogprob(sampled, position) : 0)),
    advantages: mask.slice(1).map((kept) => (kept === 1 ? weight : 0)),
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

function readLogprob(sampled: readonly (number | null)[], position: number): number {
  const logprob = sampled[position] ?? null;
  if (logprob === null || !Number.isFinite(logprob)) {
    throw new RangeError(`token ${position} is trained but has no sampling logprob`);
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
