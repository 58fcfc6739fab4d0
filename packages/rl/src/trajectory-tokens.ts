/**
 * Reading a trajectory's tokens by ranges. A trajectory's tokens are the concatenation of its segments; a range [start,
 * end) counts in that concatenation. Nothing here copies or re-encodes what was sampled.
 */
import type { Segment, TokenRange, TurnRecord } from "@rolldeck/contracts/segments";

/** What training needs of a trajectory: one attempt's segments and turns, in order. */
export interface TrajectoryTokens {
  readonly segments: readonly Segment[];
  readonly turns: readonly TurnRecord[];
}

/** offsets[i] = position of segment i's first token; one more entry holds the total length. */
export function segmentOffsets(segments: readonly Segment[]): number[] {
  const offsets = [0];
  let length = 0;
  for (const segment of segments) {
    length += segment.tokens.length;
    offsets.push(length);
  }
  return offsets;
}

/** All tokens of the trajectory, in segment order. */
export const allTokens = (segments: readonly Segment[]): number[] => segments.flatMap((segment) => [...segment.tokens]);

export const rangesLength = (ranges: readonly TokenRange[]): number =>
  ranges.reduce((sum, range) => sum + range.end - range.start, 0);

/** Positions in the trajectory, in the order of the ranges. */
export function* positionsOf(ranges: readonly TokenRange[]): Generator<number> {
  for (const { start, end } of ranges) for (let position = start; position < end; position++) yield position;
}

/** The part of `ranges` after its first `skip` tokens. */
export function dropTokens(ranges: readonly TokenRange[], skip: number): TokenRange[] {
  const rest: TokenRange[] = [];
  let left = skip;
  for (const { start, end } of ranges) {
    const dropped = Math.min(left, end - start);
    left -= dropped;
    if (start + dropped < end) rest.push({ start: start + dropped, end });
  }
  return rest;
}

/** Joins ranges that touch and drops empty ones; the tokens stay the same. */
export function joinRanges(ranges: readonly TokenRange[]): TokenRange[] {
  const joined: TokenRange[] = [];
  for (const range of ranges) {
    if (range.start >= range.end) continue;
    const last = joined.at(-1);
    if (last !== undefined && last.end === range.start)
      joined[joined.length - 1] = { start: last.start, end: range.end };
    else joined.push({ start: range.start, end: range.end });
  }
  return joined;
}

/** @throws RangeError when a range leaves the trajectory: the stored row is corrupt and must not be trained. */
export function checkRanges(ranges: readonly TokenRange[], length: number): void {
  for (const { start, end } of ranges) {
    if (start < 0 || end < start || end > length) {
      throw new RangeError(`range [${start}, ${end}) leaves a trajectory of ${length} tokens`);
    }
  }
}
