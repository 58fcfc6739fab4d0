/** The columns of a RunSummary, shared by list, detail and comparison. One statement for a page, whatever its size. */
import { RunSummary } from "@rolldeck/contracts/api/runs";
import { z } from "zod";
import { finite, iso, type Queryable, readRows } from "./rows.ts";

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
  (select ${iso('e."at"')} from "events" e where e."run_id" = r."id" order by e."seq" desc limit 1) as "lastEventAt",
  place_of."ordinal"`;

const Row = RunSummary.omit({ rewardSeries: true });

/** Summaries in the order of `runIds`; ids that do not exist are left out. */
export async function readSummaries(db: Queryable, runIds: readonly string[]): Promise<RunSummary[]> {
  if (runIds.length === 0) return [];
  const rows = await readRows(
    db,
    Row,
    `select ${summaryColumns} from unnest($1::text[]) with ordinality as wanted("id", "place")
     join "runs" r using ("id")
     join (select "id", (row_number() over (order by "created_at", "id"))::int - 1 as "ordinal" from "runs") place_of using ("id")
     order by wanted."place"`,
    [runIds],
  );
  const series = await readSparklines(
    db,
    rows.map((row) => row.runId),
  );
  return rows.map((row) => ({ ...row, rewardSeries: series.get(row.runId) ?? [] }));
}

const edgeStep = (direction: "asc" | "desc"): string => `
  (select "step" from "metric_points" m where m."run_id" = ids."run_id" and m."name" = 'reward/mean'
   order by m."step" ${direction} limit 1)`;

/**
 * reward/mean in at most 60 equal buckets of steps: the last value of each, null where there is none or it is not finite. Read
 * by index look-ups, so a run of a million steps costs what a short one does.
 */
async function readSparklines(db: Queryable, runIds: readonly string[]): Promise<Map<string, (number | null)[]>> {
  const rows = await readRows(
    db,
    z.object({ runId: z.string(), values: z.array(z.number().nullable()) }),
    `select w."run_id" as "runId", array(
       select (select ${finite('m."value"')} from "metric_points" m
         where m."run_id" = w."run_id" and m."name" = 'reward/mean'
           and m."step" >= w.lo + b * w.width and m."step" < w.lo + (b + 1) * w.width order by m."step" desc limit 1)
       from generate_series(0, (w.hi - w.lo) / w.width) b order by b) as "values"
     from (
       select s.*, ceil((hi - lo + 1) / ${sparklinePoints}::float8)::int as width
       from (select "run_id", ${edgeStep("asc")} as lo, ${edgeStep("desc")} as hi from unnest($1::text[]) ids("run_id")) s
     ) w where w.lo is not null`,
    [runIds],
  );
  return new Map(rows.map((row) => [row.runId, row.values]));
}
