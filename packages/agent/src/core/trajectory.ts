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

/** The result of each call of the turn, in call order, found by its index; null = not ended. */
export const resultsInOrder = (turn: CommittedTurn): (ToolResult | null)[] =>
  turn.calls.map((call) => turn.results.find((result) => result?.index === call.index) ?? null);

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
