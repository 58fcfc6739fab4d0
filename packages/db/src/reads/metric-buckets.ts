/**
 * Metric points in aligned buckets of steps, in one pass over the rows. Sums are taken as they are; only when Postgres finds
 * that one leaves the range of a double is the pass repeated with scaled values (safe-mean.ts).
 */

import { groupBy } from "@rolldeck/contracts/group-by";
import { z } from "zod";
import { hasCode, iso, type Queryable, readRows } from "./rows.ts";
import { meanOf, plainSum, type SumRule, scaledSum } from "./safe-mean.ts";

export const nonFiniteKinds = ["NaN", "Infinity", "-Infinity"] as const;
export type NonFinite = (typeof nonFiniteKinds)[number];

/** Finite values of a bucket; `step` and `at` are those of its last. */
interface FinitePart {
  readonly step: number;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly count: number;
  readonly at: string;
}
export interface Bucket {
  /** floor(step ÷ width) */
  readonly index: number;
  readonly finite: FinitePart | null;
  readonly others: readonly {
    readonly kind: NonFinite;
    readonly step: number;
    readonly count: number;
    readonly at: string;
  }[];
}
export interface BucketRange {
  readonly runIds: readonly string[];
  readonly names: readonly string[];
  readonly fromStep?: number;
  readonly toStep?: number;
  readonly maxPoints: number;
}
type Series = Map<string, { readonly width: number; readonly buckets: Bucket[] }>;

/** Smallest power of two that covers steps lo…hi with at most `buckets` aligned buckets. */
export function bucketWidth(lo: number, hi: number, buckets: number): number {
  let width = 1;
  while (Math.floor(hi / width) - Math.floor(lo / width) + 1 > buckets) width *= 2;
  return width;
}

/** By `<run> <name>`; series without points are left out. */
export async function readBuckets(db: Queryable, range: BucketRange): Promise<Series> {
  const extents = await readExtents(db, range);
  const placed = extents.map((extent) => ({ ...extent, width: bucketWidth(extent.lo, extent.hi, range.maxPoints) }));
  const long = placed.filter(({ lo, hi }) => hi - lo > longSeriesSteps);
  const short = placed.filter((extent) => !long.includes(extent));
  const rows = await readBucketRows(db, range, short, "many");
  for (const extent of long) rows.push(...(await readBucketRows(db, range, [extent], "one")));
  const series: Series = new Map(placed.map(({ runId, name, width }) => [`${runId} ${name}`, { width, buckets: [] }]));
  for (const { runId, name, bucket } of rows) series.get(`${runId} ${name}`)?.buckets.push(bucket);
  return series;
}

const Extent = z.object({ runId: z.string(), name: z.string(), lo: z.int(), hi: z.int() });

/** First and last step of each series within the range, by the index. */
function readExtents(db: Queryable, range: BucketRange) {
  const edge = (direction: "asc" | "desc") => `
    (select m."step" from "metric_points" m where m."run_id" = r.id and m."name" = n.name
       and m."step" between $3 and $4 order by m."step" ${direction} limit 1)`;
  return readRows(
    db,
    Extent,
    `select * from (
       select r.id as "runId", n.name as "name", ${edge("asc")} as "lo", ${edge("desc")} as "hi"
       from unnest($1::text[]) r(id) cross join unnest($2::text[]) n(name)) e
     where "lo" is not null`,
    [range.runIds, range.names, ...stepRange(range)],
  );
}

/** Steps are int4 in the rows; a larger bound means the same as the largest. */
function stepRange({ fromStep = 0, toStep }: BucketRange): [number, number] {
  const most = 2_147_483_647;
  return [Math.min(fromStep, most), Math.min(toStep ?? most, most)];
}

const Key = z.object({ runId: z.string(), name: z.string(), index: z.int() });
const FiniteRow = Key.extend({
  step: z.int().nullable(),
  count: z.int(),
  sum: z.number().nullable(),
  min: z.number().nullable(),
  max: z.number().nullable(),
  at: z.string().nullable(),
  hasOthers: z.boolean(),
});
const OtherRow = Key.extend({ kind: z.enum(nonFiniteKinds), step: z.int(), count: z.int(), at: z.string() });

interface PlacedSeries {
  readonly runId: string;
  readonly name: string;
  readonly width: number;
}
interface BucketRow {
  readonly runId: string;
  readonly name: string;
  readonly bucket: Bucket;
}

async function readBucketRows(
  db: Queryable,
  range: BucketRange,
  series: readonly PlacedSeries[],
  shape: keyof typeof sources,
): Promise<BucketRow[]> {
  const lists = [series.map(({ runId }) => runId), series.map(({ name }) => name), series.map(({ width }) => width)];
  const values = [...(shape === "one" ? lists.map((list) => list[0]) : lists), ...stepRange(range)];
  if (series.length === 0) return [];
  const { rows, rule } = await readFinite(db, shape, values);
  const others = rows.some((row) => row.hasOthers) ? await readRows(db, OtherRow, otherSql(shape), values) : [];
  const byBucket = groupBy(others, ({ runId, name, index }) => `${runId} ${name} ${index}`);
  return rows.map(({ runId, name, ...row }) => ({
    runId,
    name,
    bucket: {
      index: row.index,
      finite: finitePart(row, rule),
      others: (byBucket.get(`${runId} ${name} ${row.index}`) ?? []).map(({ kind, step, count, at }) => {
        return { kind, step, count, at };
      }),
    },
  }));
}

async function readFinite(db: Queryable, shape: keyof typeof sources, values: readonly unknown[]) {
  try {
    return { rows: await readRows(db, FiniteRow, finiteSql(shape, plainSum), values), rule: plainSum };
  } catch (error) {
    if (!hasCode(error, numericOutOfRange)) throw error;
    return { rows: await readRows(db, FiniteRow, finiteSql(shape, scaledSum), values), rule: scaledSum };
  }
}

const numericOutOfRange = "22003";
const isFiniteValue = `m."value" > '-Infinity' and m."value" < 'Infinity'`;
/** One statement for many short series; a long one alone, where Postgres can spread the pass over its workers. */
const sources = {
  many: `unnest($1::text[], $2::text[], $3::int[]) as w("run_id", "name", "width")`,
  one: `(select $1::text as "run_id", $2::text as "name", $3::int as "width") w`,
} as const;
const longSeriesSteps = 20_000;
const placed = (shape: keyof typeof sources): string => `
  from ${sources[shape]}
  join "metric_points" m
    on m."run_id" = w."run_id" and m."name" = w."name" and m."step" between $4 and $5`;

const finiteSql = (shape: keyof typeof sources, rule: SumRule): string => `
  select w."run_id" as "runId", w."name", m."step" / w."width" as "index",
    max(m."step") filter (where ${isFiniteValue}) as "step", (count(*) filter (where ${isFiniteValue}))::int as "count",
    ${rule.sql('m."value"', isFiniteValue)} as "sum",
    min(m."value") filter (where ${isFiniteValue}) as "min", max(m."value") filter (where ${isFiniteValue}) as "max",
    ${iso(`max(m."at") filter (where ${isFiniteValue})`)} as "at",
    count(*) > count(*) filter (where ${isFiniteValue}) as "hasOthers"
  ${placed(shape)} group by 1, 2, 3 order by 1, 2, 3`;

const otherSql = (shape: keyof typeof sources): string => `
  select w."run_id" as "runId", w."name", m."step" / w."width" as "index", m."value"::text as "kind",
    max(m."step") as "step", count(*)::int as "count", ${iso('max(m."at")')} as "at"
  ${placed(shape)} where m."value" in ('NaN', 'Infinity', '-Infinity') group by 1, 2, 3, 4 order by 1, 2, 5`;

function finitePart(row: Omit<z.infer<typeof FiniteRow>, "runId" | "name">, rule: SumRule): FinitePart | null {
  const { step, count, sum, min, max, at } = row;
  if (step === null || sum === null || min === null || max === null || at === null) return null;
  return { step, count, min, max, at, value: meanOf(sum, rule, count, min, max) };
}

/** Non-finite values add points: neighbours are merged, width doubled, until the series fits (or is one bucket). Pure. */
export function mergeToFit(
  buckets: readonly Bucket[],
  width: number,
  maxPoints: number,
): { readonly buckets: readonly Bucket[]; readonly width: number } {
  const points = buckets.reduce((sum, bucket) => sum + (bucket.finite ? 1 : 0) + bucket.others.length, 0);
  if (points <= maxPoints || buckets.length <= 1) return { buckets, width };
  const merged: Bucket[] = [];
  for (const bucket of buckets) {
    const index = Math.floor(bucket.index / 2);
    const last = merged.at(-1);
    if (last?.index === index) merged[merged.length - 1] = mergeBuckets(last, bucket, index);
    else merged.push({ ...bucket, index });
  }
  return mergeToFit(merged, width * 2, maxPoints);
}

function mergeBuckets(a: Bucket, b: Bucket, index: number): Bucket {
  const kinds = nonFiniteKinds.flatMap((kind) => {
    const parts = [...a.others, ...b.others].filter((other) => other.kind === kind);
    const last = parts.at(-1);
    return last ? [{ ...last, count: parts.reduce((sum, part) => sum + part.count, 0) }] : [];
  });
  return {
    index,
    finite: a.finite && b.finite ? mergeFinite(a.finite, b.finite) : (b.finite ?? a.finite),
    others: kinds,
  };
}

function mergeFinite(a: FinitePart, b: FinitePart): FinitePart {
  const count = a.count + b.count;
  const min = Math.min(a.min, b.min);
  const max = Math.max(a.max, b.max);
  const mean = a.value * (a.count / count) + b.value * (b.count / count);
  return { step: b.step, at: b.at, count, min, max, value: Math.min(max, Math.max(min, mean)) };
}
