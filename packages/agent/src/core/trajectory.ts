/**
 * What one attempt of a rollout has committed: an append-only list of segments and the turns over it. A turn's prompt is a
 * list of ranges over the concatenated segments, so each token is stored once and never re-encoded.
 */
import type { Segment, TokenRange, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";

/** A turn with what its calls gave back, in call order; null = started, not ended. */
export type CommittedTurn = TurnRecord & { readonly results: readonly (ToolResult | null)[] };
export interface Trajectory {
  readonly segments: readonly Segment[];
  readonly turns: readonly CommittedTurn[];
}

/**
 * The result of each call of the turn, in call order, found by its index; null = not ended. Asked after every call, so a turn of
 * thousands of calls must not pay for each what it pays for all: results mostly lie in their places.
 */
export function resultsInOrder({ calls, results }: Pick<CommittedTurn, "calls" | "results">): (ToolResult | null)[] {
  let byIndex: Map<number, ToolResult> | null = null;
  return calls.map(({ index }, place) => {
    const own = results[place];
    if (own?.index === index) return own;
    byIndex ??= new Map(results.flatMap((result) => (result === null ? [] : [[result.index, result]])));
    return byIndex.get(index) ?? null;
  });
}

/** Joins ranges that touch and drops empty ones; the tokens stay the same. */
export function joinRanges(ranges: readonly TokenRange[]): TokenRange[] {
  const joined: TokenRange[] = [];
  for (const range of ranges) {
    if (range.start >= range.end) continue;
    const last = joined.at(-1);
    if (last !== undefined && last.end === range.start)
      joined[joined.length - 1] = { start: last.start, end: range.end };
    else joined.push(range);
  }
  return joined;
}

/** Do joined ranges begin with these others? */
export function continues(ranges: readonly TokenRange[], beginning: readonly TokenRange[]): boolean {
  return beginning.every(({ start, end }, place) => {
    const own = ranges[place];
    if (own === undefined || own.start !== start) return false;
    return place === beginning.length - 1 ? own.end >= end : own.end === end;
  });
}

/** The ranges without their first tokens. */
export function rangesAfter(ranges: readonly TokenRange[], tokens: number): TokenRange[] {
  let left = tokens;
  return ranges.flatMap(({ start, end }) => {
    const skipped = Math.min(left, end - start);
    left -= skipped;
    return start + skipped < end ? [{ start: start + skipped, end }] : [];
  });
}

export const rangesLength = (ranges: readonly TokenRange[]): number =>
  ranges.reduce((sum, { start, end }) => sum + end - start, 0);
