/**
 * How many of something there were, in equal slices of time: exact means from intervals. An interval adds +1 at its start and −1
 * at its end. SQL sums those edges per slice — the edge itself and the part of its slice that lies after it — and a prefix sum
 * gives the mean count of each slice: the work is one pass over the intervals, whatever the number of slices.
 */

import { groupBy } from "@rolldeck/contracts/group-by";
import { z } from "zod";
import { type Queryable, readRows } from "./rows.ts";

/** Seconds since 1970 of both ends, and how many slices lie between. */
export interface Slicing {
  readonly fromS: number;
  readonly toS: number;
  readonly slices: number;
}

const Edge = z.object({
  lane: z.string(),
  slice: z.int(),
  /** Change of the count in this slice and every later one. */
  change: z.number(),
  /** Σ sign × part of the slice after the edge. */
  partial: z.number(),
});
export type Edge = z.output<typeof Edge>;

/**
 * @param intervals SQL that gives (lane text, a, b timestamptz; b null = still there), over $1, from $2 to $3 in seconds since 1970
 * @returns mean counts by lane; a lane without an interval is not in it
 */
export async function sliceCounts(
  db: Queryable,
  intervals: string,
  runId: string,
  { fromS, toS, slices }: Slicing,
): Promise<Map<string, number[]>> {
  const edges = await readRows(
    db,
    Edge,
    `with intervals as (${intervals}),
     edges as (
       select "lane", 1 as sign, extract(epoch from a)::float8 as t from intervals
       union all
       select "lane", -1, extract(epoch from b)::float8 from intervals where b is not null),
     placed as (
       select "lane", sign, greatest(t - $2, 0) / $4 as place from edges where t < $3)
     select "lane", floor(place)::int as "slice", sum(sign)::float8 as "change",
       sum(sign * (1 - (place - floor(place))))::float8 as "partial"
     from placed where floor(place) < $5 group by 1, 2`,
    [runId, fromS, toS, (toS - fromS) / slices, slices],
  );
  return new Map([...groupBy(edges, ({ lane }) => lane)].map(([lane, of]) => [lane, meanCounts(of, slices)]));
}

/** Mean count of each slice from its edges; rounded to a thousandth, which also removes the sums' last-bit noise. */
export function meanCounts(edges: readonly Omit<Edge, "lane">[], slices: number): number[] {
  const change = new Float64Array(slices);
  const partial = new Float64Array(slices);
  for (const edge of edges) {
    change[edge.slice] = (change[edge.slice] ?? 0) + edge.change;
    partial[edge.slice] = (partial[edge.slice] ?? 0) + edge.partial;
  }
  let before = 0;
  return Array.from(change, (delta, slice) => {
    const mean = before + (partial[slice] ?? 0);
    before += delta;
    return Math.max(0, Math.round(mean * 1000) / 1000);
  });
}
