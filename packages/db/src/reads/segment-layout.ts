/** Where each segment of an attempt lies in its token list, and the tokens of chosen segments. */
import { SegmentOrigin } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { decodeLogprobs, decodeTokens } from "../hot/token-codec.ts";
import { type Queryable, readRows } from "./rows.ts";

const LayoutRow = z.object({
  index: z.int(),
  origin: SegmentOrigin,
  length: z.int(),
  policyVersion: z.int().nullable(),
});
/** A segment without its tokens; `start` counts tokens from the beginning of the trajectory. */
export type PlacedSegment = z.infer<typeof LayoutRow> & { readonly start: number };

export interface SegmentTokens {
  readonly tokens: readonly number[];
  readonly logprobs: readonly (number | null)[] | null;
}

/** All segments in order, without their bytes. */
export async function readLayout(db: Queryable, rolloutId: string, attempt: number): Promise<PlacedSegment[]> {
  const rows = await readRows(
    db,
    LayoutRow,
    `select "index", "origin", "length", "policy_version" as "policyVersion" from "segments"
     where "rollout_id" = $1 and "attempt" = $2 order by "index"`,
    [rolloutId, attempt],
  );
  let start = 0;
  return rows.map((row) => {
    const placed = { ...row, start };
    start += row.length;
    return placed;
  });
}

export const totalTokens = (layout: readonly PlacedSegment[]): number =>
  layout.reduce((sum, segment) => sum + segment.length, 0);

/** Tokens of segments first…last (inclusive), by index. */
export const readSegmentTokens = (
  db: Queryable,
  rolloutId: string,
  attempt: number,
  first: number,
  last: number,
): Promise<Map<number, SegmentTokens>> =>
  readTokensOf(
    db,
    rolloutId,
    attempt,
    Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at),
  );

/** Tokens of chosen segments, by index. */
export async function readTokensOf(
  db: Queryable,
  rolloutId: string,
  attempt: number,
  indexes: readonly number[],
): Promise<Map<number, SegmentTokens>> {
  const rows = await readRows(
    db,
    z.object({
      index: z.int(),
      length: z.int(),
      tokens: z.instanceof(Buffer),
      logprobs: z.instanceof(Buffer).nullable(),
    }),
    `select "index", "length", "tokens", "logprobs" from "segments"
     where "rollout_id" = $1 and "attempt" = $2 and "index" = any($3::int[])`,
    [rolloutId, attempt, indexes],
  );
  return new Map(
    rows.map(({ index, length, tokens, logprobs }) => [
      index,
      { tokens: decodeTokens(tokens, length), logprobs: logprobs && decodeLogprobs(logprobs) },
    ]),
  );
}
