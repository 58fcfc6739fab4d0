/** Stage durations of a run's newest scored rollouts, and how long its steps and their updates took. */
import type { Durations, ReadDurations } from "@rolldeck/contracts/api/durations";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { readRunStatus } from "./read-run-status.ts";
import { type Queryable, readRow } from "./rows.ts";

export const DurationRows = z.object({
  taskSet: z.array(z.int()),
  instanceIndex: z.array(z.int()),
  initMs: z.array(z.number()),
  reset: z.array(z.boolean()),
  runMs: z.array(z.number()),
  evaluateMs: z.array(z.number()),
  modelMs: z.array(z.number()),
  sampledTokens: z.array(z.int()),
  turns: z.array(z.int()),
});
const Steps = z.object({ step: z.array(z.int()), stepMs: z.array(z.number()), updateMs: z.array(z.number()) });
const maxSteps = 200;

export interface DurationsAsked extends z.output<typeof ReadDurations> {
  /** Of no later step than this; absent = of all. */
  readonly upToStep?: number;
}

/** @throws NotFoundError */
export async function readDurations(db: Queryable, input: DurationsAsked): Promise<Durations> {
  const { runId, purpose, limit, upToStep = null } = input;
  if ((await readRunStatus(db, runId)) === null) throw new NotFoundError("run", runId);
  const [rollouts, steps] = await Promise.all([
    readRow(db, DurationRows, rolloutsSql, [runId, purpose, limit, upToStep]),
    readRow(db, Steps, stepsSql, [runId, purpose, upToStep]),
  ]);
  // Sums over no rows are one row.
  if (rollouts === null || steps === null) throw new NotFoundError("run", runId);
  return { runId, rollouts, steps };
}

/** SQL of the milliseconds from one column to another. */
export const msBetween = (from: string, to: string): string => `1000 * extract(epoch from ${to} - ${from})::float8`;
const column = (name: string): string => `coalesce(array_agg("${name}" order by "settledAt", "id"), '{}') as "${name}"`;

/** One whose grading was tried again is left out: its one span holds the failed tries and the time between them too. */
export const hasDurations = `r."state" = 'settled' and r."outcome" = 'completed' and r."evaluate_failures" = 0`;

/** The contract's columns. @param newest SQL of rollouts: id, attempt, settledAt, taskSet, instanceIndex, sampledTokens, turns */
export const durationColumns = (newest: string): string => `
  with newest as (${newest}),
  whole as (
    select n.*, ${msBetween('i."started_at"', 'i."ended_at"')} as "initMs", ${msBetween('u."started_at"', 'u."ended_at"')} as "runMs",
      ${msBetween('e."started_at"', 'e."ended_at"')} as "evaluateMs",
      -- The first use of an environment is the one that it was opened for; where a reset failed, another was opened after it.
      (select coalesce(bool_and(x."place" > 1), false) from "sandbox_uses" x
        where x."rollout_id" = n."id" and x."attempt" = n."attempt") as "reset",
      (select coalesce(sum(t."sample_ms"), 0)::float8 from "transitions" t
        where t."rollout_id" = n."id" and t."attempt" = n."attempt") as "modelMs"
    from newest n
      join "stage_spans" i on i."rollout_id" = n."id" and i."attempt" = n."attempt" and i."stage" = 'init'
      join "stage_spans" u on u."rollout_id" = n."id" and u."attempt" = n."attempt" and u."stage" = 'run'
      join "stage_spans" e on e."rollout_id" = n."id" and e."attempt" = n."attempt" and e."stage" = 'evaluate'
    where i."started_at" <= i."ended_at" and u."started_at" <= u."ended_at" and e."started_at" <= e."ended_at")
  select ${["taskSet", "instanceIndex", "initMs", "reset", "runMs", "evaluateMs", "modelMs", "sampledTokens", "turns"].map(column).join(", ")}
  from whole`;

const rolloutsSql = durationColumns(`
    select r."id", r."attempt", r."settled_at" as "settledAt", g."task_set" as "taskSet", g."instance_index" as "instanceIndex",
      r."sampled_tokens" as "sampledTokens", r."turns"
    from "rollouts" r join "groups" g on g."id" = r."group_id" join "steps" s on s."id" = r."step_id"
    where r."run_id" = $1 and s."purpose" = $2 and ${hasDurations} and ($4::int is null or s."step" <= $4)
    order by r."settled_at" desc, r."id" limit $3`);

const stepsSql = `
  with newest as (
    select "step", ${msBetween('"created_at"', '"ended_at"')} as "stepMs",
      coalesce(${msBetween('"update_started_at"', '"ended_at"')}, 0) as "updateMs"
    from "steps" where "run_id" = $1 and "purpose" = $2 and "state" = 'done' and "ended_at" is not null
      and ($3::int is null or "step" <= $3)
    order by "step" desc limit ${maxSteps})
  select ${["step", "stepMs", "updateMs"].map((name) => `coalesce(array_agg("${name}" order by "step"), '{}') as "${name}"`).join(", ")}
  from newest`;
