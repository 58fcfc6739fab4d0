/** One step as it was scheduled: every stage of every attempt, what was in use meanwhile, and what the run stage was spent on. */
import type { ReadSchedule, Schedule } from "@rolldeck/contracts/api/schedule";
import { endingNames } from "@rolldeck/contracts/endings";
import { rolloutStates, stages, stepStates } from "@rolldeck/contracts/lifecycle";
import { z } from "zod";
import { type DispatchedRun, readDispatched } from "./read-dispatched.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";
import { sliceCounts } from "./slice-counts.ts";

export interface ScheduleRows extends DispatchedRun {
  readonly steps: readonly number[];
  /** Null: the step is not there. */
  readonly shown: ShownStep | null;
}
export interface ShownStep extends z.output<typeof StepRow> {
  readonly toS: number;
  readonly rollouts: readonly z.output<typeof RolloutRow>[];
  readonly spans: readonly z.output<typeof SpanRow>[];
  readonly modelMs: number;
  readonly toolMs: number;
  /** Mean counts of the whole run by lane: stages, `model`, `sandbox`, and `sandbox/all` over all runs. */
  readonly use: ReadonlyMap<string, readonly number[]>;
}

export const useSlices = 240;
const shownSteps = 500;
const seconds = (column: string): string => `extract(epoch from ${column})::float8`;

const StepRow = z.object({
  stepId: z.string(),
  step: z.int(),
  state: z.enum(stepStates),
  nowS: z.number(),
  fromS: z.number(),
  gatheredS: z.number().nullable(),
  updateStartedS: z.number().nullable(),
  endedS: z.number().nullable(),
});
const RolloutRow = z.object({
  rolloutId: z.string(),
  groupId: z.string(),
  taskSet: z.string(),
  instanceId: z.string(),
  sample: z.int(),
  attempt: z.int(),
  state: z.enum(rolloutStates),
  ending: z.enum(endingNames).nullable(),
  settledS: z.number().nullable(),
});
const SpanRow = z.object({
  rolloutId: z.string(),
  attempt: z.int(),
  stage: z.enum(stages),
  readyS: z.number(),
  startedS: z.number().nullable(),
  endedS: z.number().nullable(),
});
const Sums = z.object({ modelMs: z.number(), toolMs: z.number() });

/** @throws NotFoundError for the run */
export async function readSchedule(db: Queryable, input: z.output<typeof ReadSchedule>): Promise<ScheduleRows> {
  const { runId, purpose } = input;
  const dispatched = await readDispatched(db, runId);
  const steps = await readRows(
    db,
    z.object({ step: z.int() }),
    `select "step" from "steps" where "run_id" = $1 and "purpose" = $2 order by "step" desc limit ${shownSteps}`,
    [runId, purpose],
  );
  const wanted = input.step ?? steps[0]?.step;
  const step = wanted === undefined ? null : await readStep(db, runId, purpose, wanted);
  return {
    ...dispatched,
    steps: steps.map((each) => each.step),
    shown: step && (await readShown(db, runId, step)),
  };
}

/** Groups that moved here from an earlier step began before this one was made. */
const readStep = (db: Queryable, runId: string, purpose: Schedule["purpose"], step: number) =>
  readRow(
    db,
    StepRow,
    `select s."id" as "stepId", s."step", s."state", ${seconds("now()")} as "nowS",
       ${seconds(`least(s."created_at", (select min(p."ready_at") from "rollouts" r
         join "stage_spans" p on p."rollout_id" = r."id" where r."step_id" = s."id"))`)} as "fromS",
       ${seconds('s."gathered_at"')} as "gatheredS", ${seconds('s."update_started_at"')} as "updateStartedS",
       ${seconds('s."ended_at"')} as "endedS"
     from "steps" s where s."run_id" = $1 and s."purpose" = $2 and s."step" = $3`,
    [runId, purpose, Math.min(step, 2_147_483_647)],
  );

async function readShown(db: Queryable, runId: string, step: z.output<typeof StepRow>): Promise<ShownStep> {
  // At least a second is shown, or a slice would have no width.
  const toS = Math.max(step.endedS ?? step.nowS, step.fromS + 1);
  const sums = await readRow(db, Sums, sumsSql, [step.stepId]);
  return {
    ...step,
    toS,
    rollouts: await readRows(db, RolloutRow, rolloutsSql, [step.stepId]),
    spans: await readRows(db, SpanRow, spansSql, [step.stepId]),
    modelMs: sums?.modelMs ?? 0,
    toolMs: sums?.toolMs ?? 0,
    use: await sliceCounts(db, useSql, runId, { fromS: step.fromS, toS, slices: useSlices }),
  };
}

const rolloutsSql = `
  select r."id" as "rolloutId", g."id" as "groupId", g."task" as "taskSet", g."instance_id" as "instanceId", r."sample", r."attempt",
    r."state", r."ending", ${seconds('r."settled_at"')} as "settledS"
  from "groups" g join "rollouts" r on r."group_id" = g."id"
  where g."step_id" = $1 order by g."position", g."id", r."sample"`;

const spansSql = `
  select p."rollout_id" as "rolloutId", p."attempt", p."stage", ${seconds('p."ready_at"')} as "readyS",
    ${seconds('p."started_at"')} as "startedS", ${seconds('p."ended_at"')} as "endedS"
  from "rollouts" r join "stage_spans" p on p."rollout_id" = r."id"
  where r."step_id" = $1 order by p."ready_at", p."rollout_id", p."attempt"`;

/** Of the attempts that count. */
const sumsSql = `
  select
    (select coalesce(sum(t."sample_ms"), 0)::float8 from "rollouts" r
       join "transitions" t on t."rollout_id" = r."id" and t."attempt" = r."attempt" where r."step_id" = $1) as "modelMs",
    (select coalesce(sum(c."duration_ms"), 0)::float8 from "rollouts" r
       join "tool_calls" c on c."rollout_id" = r."id" and c."attempt" = r."attempt" where r."step_id" = $1) as "toolMs"`;

/** A call of the model is over when its turn is written; it began `sample_ms` before. */
const useSql = `
  select "stage" as "lane", "started_at" as a, "ended_at" as b from "stage_spans"
  where "run_id" = $1 and "started_at" < to_timestamp($3) and ("ended_at" is null or "ended_at" > to_timestamp($2))
  union all
  select 'model', t."at" - t."sample_ms" * interval '1 millisecond', t."at"
  from "stage_spans" s join "transitions" t on t."rollout_id" = s."rollout_id" and t."attempt" = s."attempt"
  where s."run_id" = $1 and s."stage" = 'run' and s."started_at" < to_timestamp($3)
    and (s."ended_at" is null or s."ended_at" > to_timestamp($2)) and t."at" > to_timestamp($2)
  union all
  select l."lane", b."created_at", b."closed_at"
  from "runs" u join "sandboxes" b on b."run_id" = u."id"
    cross join lateral (values ('sandbox/all'), (case when u."id" = $1 then 'sandbox' end)) l("lane")
  where u."created_at" < to_timestamp($3) and (u."ended_at" is null or u."ended_at" > to_timestamp($2))
    and b."created_at" < to_timestamp($3) and (b."closed_at" is null or b."closed_at" > to_timestamp($2))
    and l."lane" is not null`;
