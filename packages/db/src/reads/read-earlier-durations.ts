/**
 * Stage durations of earlier runs that did as a run is to do: the same task sets with the same options, the same model on the same
 * backend. Invariant: nothing that settled after the run began is in it, so what is predicted from it is a forecast.
 */
import type { Durations } from "@rolldeck/contracts/api/durations";
import { z } from "zod";
import { DurationRows, durationColumns, hasDurations, msBetween } from "./read-durations.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";

export interface EarlierDurations extends Durations {
  /** Runs that they come from, newest first. */
  readonly runIds: readonly string[];
}

/** Earlier runs that are looked at: what is long ago ran on other machines. */
const maxRuns = 8;
/** Of each, its newest steps. */
const maxStepsOfRun = 16;
const maxSteps = 200;

const RunRow = z.object({ runId: z.string() });
const StepRow = z.object({ step: z.int(), stepMs: z.number(), updateMs: z.number() });

/** `taskSet` of the rollouts is the place in this run's own config; a step of another size has its update scaled to this run's. */
export async function readEarlierDurations(
  db: Queryable,
  { runId, purpose, limit }: { readonly runId: string; readonly purpose: "train" | "evaluate"; readonly limit: number },
): Promise<EarlierDurations> {
  const runs = await readRows(db, RunRow, runsSql, [runId, purpose]);
  const runIds = runs.map((run) => run.runId);
  const rollouts = await readRow(db, DurationRows, rolloutsSql, [runIds, purpose, limit, runId]);
  const steps = await readRows(db, StepRow, stepsSql, [runIds, purpose, runId]);
  const none = { taskSet: [], instanceIndex: [], initMs: [], reset: [], runMs: [], evaluateMs: [], modelMs: [] };
  return {
    runId,
    runIds,
    rollouts: rollouts ?? { ...none, sampledTokens: [], turns: [] },
    steps: {
      step: steps.map(({ step }) => step),
      stepMs: steps.map(({ stepMs }) => stepMs),
      updateMs: steps.map(({ updateMs }) => updateMs),
    },
  };
}

/** A task set as one does it; how many of its instances are used, and how often, changes nothing about one. */
const setOf = (element: string): string => `(${element} - 'weight' - 'size')`;

const runsSql = `
  select u."id" as "runId"
  from "runs" me join "runs" u on u."id" <> me."id" and u."started_at" < me."started_at"
    and u."config" -> 'model' ->> 'name' = me."config" -> 'model' ->> 'name' and u."config" -> 'backend' = me."config" -> 'backend'
  where me."id" = $1
    and exists (
      select from jsonb_array_elements(u."config" -> 'taskSets') theirs, jsonb_array_elements(me."config" -> 'taskSets') mine
      where ${setOf("theirs")} = ${setOf("mine")})
    and exists (
      select from "rollouts" r join "steps" s on s."id" = r."step_id"
      where r."run_id" = u."id" and s."purpose" = $2 and ${hasDurations} and r."settled_at" < me."started_at")
  order by u."started_at" desc, u."id" limit ${maxRuns}`;

const rolloutsSql = durationColumns(`
    select r."id", r."attempt", r."settled_at" as "settledAt", mine."place" as "taskSet", g."instance_index" as "instanceIndex",
      r."sampled_tokens" as "sampledTokens", r."turns"
    from "runs" me
      cross join lateral (
        select distinct on (${setOf("e.element")}) e.element, e.place::int - 1 as place
        from jsonb_array_elements(me."config" -> 'taskSets') with ordinality e (element, place) order by ${setOf("e.element")}, e.place
      ) mine
      join "runs" u on u."id" = any($1::text[])
      cross join lateral (
        select "id" from "steps" where "run_id" = u."id" and "purpose" = $2 order by "step" desc limit ${maxStepsOfRun}
      ) s
      join "groups" g on g."step_id" = s."id" and ${setOf('(u."config" -> \'taskSets\' -> g."task_set")')} = ${setOf("mine.element")}
      join "rollouts" r on r."group_id" = g."id"
    where me."id" = $4 and ${hasDurations} and r."settled_at" < me."started_at"
    order by r."settled_at" desc, r."id" limit $3`);

/** Rollouts that a config trains in a step. */
const sizeOf = (config: string): string =>
  `((${config} -> 'algorithm' ->> 'groupsPerStep')::float8 * (${config} -> 'algorithm' ->> 'groupSize')::float8)`;

const stepsSql = `
  select s."step", ${msBetween('s."created_at"', 's."ended_at"')} as "stepMs",
    coalesce(${msBetween('s."update_started_at"', 's."ended_at"')}, 0) * ${sizeOf('me."config"')} / ${sizeOf('u."config"')} as "updateMs"
  from "runs" me, "steps" s join "runs" u on u."id" = s."run_id"
  where me."id" = $3 and s."run_id" = any($1::text[]) and s."purpose" = $2 and s."state" = 'done' and s."ended_at" < me."started_at"
  order by s."ended_at" desc limit ${maxSteps}`;
