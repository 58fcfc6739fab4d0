/**
 * Series for charts, thinned in SQL to at most `maxPoints` a series, the same way every time.
 *
 * Buckets are `bucketSteps` steps wide, a power of two, aligned to step 0: as a run goes on its old buckets stay as they
 * are until the width doubles. Each keeps min and max (a spike survives), the mean and the count of finite values. NaN and
 * the infinities never enter those numbers: they come as points of their own, value null, with their kind and count.
 */
import type { MetricPoint, MetricSeries, MetricsReply, ReadMetrics } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import type { z } from "zod";
import { type Bucket, mergeToFit, readBuckets } from "./metric-buckets.ts";
import { readHead } from "./read-events.ts";
import type { Queryable } from "./rows.ts";

type Input = z.output<typeof ReadMetrics>;
type Point = z.output<typeof MetricPoint>;

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
  const found = await readBuckets(db, { ...input, runIds, names });
  return runIds.flatMap((runId) =>
    names.map((name) => {
      const { width, buckets } = found.get(`${runId} ${name}`) ?? { width: 1, buckets: [] };
      const fitted = mergeToFit(buckets, width, input.maxPoints);
      return { runId, name, bucketSteps: fitted.width, points: fitted.buckets.flatMap(pointsOf) };
    }),
  );
}

/** The finite point of a bucket, then one for each kind of other value in it. */
function pointsOf({ finite, others }: Bucket): Point[] {
  const rest = others.map(({ kind, step, count, at }): Point => {
    return { step, value: null, min: null, max: null, count, nonFinite: kind, at };
  });
  const points = finite ? [{ ...finite, nonFinite: null }, ...rest] : rest;
  return points.sort((a, b) => a.step - b.step);
}
