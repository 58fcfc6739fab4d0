/**
 * Series for charts, thinned in SQL to at most `maxPoints` a series, the same way every time.
 *
 * Buckets are `bucketSteps` steps wide, a power of two, aligned to step 0: as a run goes on its old buckets stay as they
 * are until the width doubles. Each keeps min and max (a spike survives), the mean and the count of finite values. NaN and
 * the infinities never enter those numbers: they come as points of their own, value null, with their kind and count.
 */
import type { MetricPoint, MetricSeries, MetricsReply, ReadMetrics } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import type { MetricName } from "@rolldeck/contracts/metrics";
import { z } from "zod";
import { readHead } from "./read-events.ts";
import { iso, type Queryable, readRows } from "./rows.ts";
import { meanOf, scaledSum } from "./safe-mean.ts";

type Input = z.output<typeof ReadMetrics>;
type Point = z.output<typeof MetricPoint>;

const nonFinite = `('NaN', 'Infinity', '-Infinity')`;

/** Smallest power of two that covers steps lo…hi with at most `buckets` aligned buckets. */
export function bucketWidth(lo: number, hi: number, buckets: number): number {
  let width = 1;
  while (Math.floor(hi / width) - Math.floor(lo / width) + 1 > buckets) width *= 2;
  return width;
}

/** @throws NotFoundError */
export async function readMetrics(db: Queryable, input: Input): Promise<z.output<typeof MetricsReply>> {
  if ((await readHead(db, input.runId)) === null) throw new NotFoundError("run", input.runId);
  const series = await readSeries(db, [input.runId], input);
  return { runId: input.runId, series: series.map(({ runId: _, ...rest }) => rest) };
}

/** Series of several runs; each (run, name) that was asked for is there, empty when it has no points. */
export async function readSeries(
  db: Queryable,
  runIds: readonly string[],
  input: Omit<Input, "runId">,
): Promise<(MetricSeries & { readonly runId: string })[]> {
  const names = [...new Set(input.names)];
  const extents = await readExtents(db, runIds, names, input);
  const widths = new Map(
    extents.map(({ runId, name, lo, hi, kinds }) => {
      // Every kind of non-finite value may add one point to each bucket: leave room for them.
      const buckets = Math.max(1, Math.floor(input.maxPoints / (1 + kinds)));
      return [`${runId} ${name}`, bucketWidth(lo, hi, buckets)] as const;
    }),
  );
  const points = await readBuckets(db, runIds, names, input, extents, widths);
  return runIds.flatMap((runId) =>
    names.map((name) => ({
      runId,
      name,
      bucketSteps: widths.get(`${runId} ${name}`) ?? 1,
      points: points.get(`${runId} ${name}`) ?? [],
    })),
  );
}

type Extent = { runId: string; name: string; lo: number; hi: number; kinds: number };

const inRange = `"run_id" = any($1) and "name" = any($2)
  and "step" >= coalesce($3::int, "step") and "step" <= coalesce($4::int, "step")`;

function readExtents(
  db: Queryable,
  runIds: readonly string[],
  names: readonly MetricName[],
  range: Pick<Input, "fromStep" | "toStep">,
): Promise<Extent[]> {
  return readRows(
    db,
    z.object({ runId: z.string(), name: z.string(), lo: z.int(), hi: z.int(), kinds: z.int() }),
    `select "run_id" as "runId", "name", min("step") as "lo", max("step") as "hi",
       (count(distinct "value") filter (where "value" in ${nonFinite}))::int as "kinds"
     from "metric_points" where ${inRange} group by "run_id", "name"`,
    [runIds, names, clampStep(range.fromStep), clampStep(range.toStep)],
  );
}

const PointRow = z.object({
  runId: z.string(),
  name: z.string(),
  step: z.int(),
  nonFinite: z.enum(["NaN", "Infinity", "-Infinity"]).nullable(),
  sum: z.number().nullable(),
  min: z.number().nullable(),
  max: z.number().nullable(),
  count: z.int(),
  at: z.string(),
});

async function readBuckets(
  db: Queryable,
  runIds: readonly string[],
  names: readonly MetricName[],
  range: Pick<Input, "fromStep" | "toStep">,
  extents: readonly Extent[],
  widths: ReadonlyMap<string, number>,
): Promise<Map<string, Point[]>> {
  const rows = await readRows(
    db,
    PointRow,
    `with placed as (
       select m.*, m."step" / w."width" as "bucket",
         case when m."value" in ${nonFinite} then m."value"::text end as "kind"
       from "metric_points" m
       join unnest($5::text[], $6::text[], $7::int[]) as w("run_id", "name", "width") using ("run_id", "name")
       where ${inRange.replaceAll(/"(run_id|name|step)"/g, 'm."$1"')})
     select "run_id" as "runId", "name", max("step") as "step", "kind" as "nonFinite",
       ${scaledSum('"value"', '"kind" is null')} as "sum",
       case when "kind" is null then min("value") end as "min",
       case when "kind" is null then max("value") end as "max",
       count(*)::int as "count", ${iso('max("at")')} as "at"
     from placed group by "run_id", "name", "bucket", "kind"
     order by "run_id", "name", "step", "kind" nulls first`,
    [
      runIds,
      names,
      clampStep(range.fromStep),
      clampStep(range.toStep),
      extents.map((extent) => extent.runId),
      extents.map((extent) => extent.name),
      extents.map((extent) => widths.get(`${extent.runId} ${extent.name}`) ?? 1),
    ],
  );
  const series = new Map<string, Point[]>();
  for (const { runId, name, sum, ...row } of rows) {
    const key = `${runId} ${name}`;
    const { min, max, count } = row;
    const value = sum === null || min === null || max === null ? null : meanOf(sum, count, min, max);
    const point = { ...row, value };
    const points = series.get(key);
    if (points) points.push(point);
    else series.set(key, [point]);
  }
  return series;
}

/** Steps are int4 in the rows; a larger bound means the same as the largest. */
const clampStep = (step: number | undefined): number | null =>
  step === undefined ? null : Math.min(step, 2_147_483_647);
