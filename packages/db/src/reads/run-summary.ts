/** The columns of a RunSummary, shared by list, detail and comparison. One statement for a page, whatever its size. */
import { RunSummary } from "@rolldeck/contracts/api/runs";
import { z } from "zod";
import { finite, iso, type Queryable, readRows } from "./rows.ts";
import { meanOf, scaledSum } from "./safe-mean.ts";

const sparklinePoints = 60;

const lastMetric = (name: string, column: string): string => `
  (select ${finite('m."value"')} from "metric_points" m
   where m."run_id" = r."id" and m."name" = '${name}' order by m."step" desc limit 1) as "${column}"`;

/** Select list over `runs r`; the sparkline is added by `withSparklines`. */
const summaryColumns = `
  r."id" as "runId", r."name", r."project", r."tags", r."kind", r."status", r."reason",
  r."config" #>> '{model,name}' as "model", r."config" #>> '{backend,name}' as "backend",
  array(select t ->> 'name' from jsonb_array_elements(r."config" -> 'taskSets') t) as "taskSets",
  r."step", r."steps",
  ${lastMetric("reward/mean", "reward")}, ${lastMetric("reward/success", "success")},
  ${lastMetric("policy/logprob-gap", "logprobGap")},
  r."sampled_tokens"::text as "sampledTokens",
  ${iso('r."created_at"')} as "createdAt", ${iso('r."started_at"')} as "startedAt", ${iso('r."ended_at"')} as "endedAt",
  (select ${iso('e."at"')} from "events" e where e."run_id" = r."id" order by e."seq" desc limit 1) as "lastEventAt"`;

const Row = RunSummary.omit({ rewardSeries: true });

/** Summaries in the order of `runIds`; ids that do not exist are left out. */
export async function readSummaries(db: Queryable, runIds: readonly string[]): Promise<RunSummary[]> {
  if (runIds.length === 0) return [];
  const rows = await readRows(
    db,
    Row,
    `select ${summaryColumns} from unnest($1::text[]) with ordinality as wanted("id", "place")
     join "runs" r using ("id") order by wanted."place"`,
    [runIds],
  );
  const series = await readSparklines(
    db,
    rows.map((row) => row.runId),
  );
  return rows.map((row) => ({ ...row, rewardSeries: series.get(row.runId) ?? [] }));
}

const onlyFinite = `m."value" not in ('NaN', 'Infinity', '-Infinity')`;
const Bucket = z.object({
  runId: z.string(),
  bucket: z.int(),
  buckets: z.int(),
  count: z.int(),
  sum: z.number().nullable(),
  min: z.number().nullable(),
  max: z.number().nullable(),
});

/** reward/mean by step in at most 60 equal buckets of steps; a bucket without a finite point is null. */
async function readSparklines(db: Queryable, runIds: readonly string[]): Promise<Map<string, (number | null)[]>> {
  const rows = await readRows(
    db,
    Bucket,
    `with spans as (
       select "run_id", min("step") as lo, max("step") as hi from "metric_points"
       where "run_id" = any($1) and "name" = 'reward/mean' group by "run_id"),
     widths as (select *, ceil((hi - lo + 1) / ${sparklinePoints}::float8)::int as width from spans)
     select m."run_id" as "runId", (m."step" - w.lo) / w.width as "bucket", (w.hi - w.lo) / w.width + 1 as "buckets",
       (count(*) filter (where ${onlyFinite}))::int as "count", ${scaledSum('m."value"', onlyFinite)} as "sum",
       min(m."value") filter (where ${onlyFinite}) as "min", max(m."value") filter (where ${onlyFinite}) as "max"
     from "metric_points" m join widths w using ("run_id") where m."name" = 'reward/mean'
     group by m."run_id", 2, 3`,
    [runIds],
  );
  const series = new Map<string, (number | null)[]>();
  for (const row of rows) {
    const points = series.get(row.runId) ?? new Array<number | null>(row.buckets).fill(null);
    const { sum, count, min, max } = row;
    points[row.bucket] = sum === null || min === null || max === null ? null : meanOf(sum, count, min, max);
    series.set(row.runId, points);
  }
  return series;
}
