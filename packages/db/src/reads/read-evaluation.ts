/** Scores of a run's evaluations, by instance. What they mean is worked out by whoever reads them. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { groupBy } from "@rolldeck/contracts/group-by";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { type Queryable, readRows } from "./rows.ts";

const Step = z.object({ stepId: z.string(), version: z.int(), state: z.enum(stepStates) });
const Group = z.object({
  stepId: z.string(),
  taskSet: z.int(),
  task: z.string(),
  instanceId: z.string(),
  rollouts: z.int(),
  settled: z.int(),
  rewards: z.array(z.number()),
  successes: z.array(z.boolean()),
});
export type EvaluatedInstance = Omit<z.infer<typeof Group>, "stepId">;
export interface StoredEvaluation extends z.infer<typeof Step> {
  readonly instances: readonly EvaluatedInstance[];
}
export interface RunEvaluations {
  readonly runId: string;
  readonly name: string;
  readonly config: RunConfig;
  /** Newest version first. */
  readonly evaluations: readonly StoredEvaluation[];
}

/** @param limit newest evaluations @throws NotFoundError */
export async function readEvaluations(db: Queryable, runId: string, limit: number): Promise<RunEvaluations> {
  const [run] = await readRows(
    db,
    z.object({ name: z.string(), config: RunConfig }),
    `select "name", "config" from "runs" where "id" = $1`,
    [runId],
  );
  if (run === undefined) throw new NotFoundError("run", runId);
  const steps = await readRows(
    db,
    Step,
    `select "id" as "stepId", "step" as "version", "state" from "steps"
     where "run_id" = $1 and "purpose" = 'evaluate' order by "step" desc limit $2`,
    [runId, limit],
  );
  const groups = await readGroups(
    db,
    steps.map(({ stepId }) => stepId),
  );
  const byStep = groupBy(groups, ({ stepId }) => stepId);
  const evaluations = steps.map((step) => ({ ...step, instances: byStep.get(step.stepId) ?? [] }));
  return { runId, name: run.name, config: run.config, evaluations };
}

/** Scored: settled as completed, with a reward. Reopening (hot/reopen-evaluation.ts) goes on with the others. */
const readGroups = (db: Queryable, stepIds: readonly string[]) =>
  readRows(
    db,
    Group,
    `select g."step_id" as "stepId", g."task_set" as "taskSet", g."task", g."instance_id" as "instanceId",
       count(r."id")::int as "rollouts", (count(*) filter (where r."state" = 'settled'))::int as "settled",
       coalesce(array_agg(r."reward" order by r."sample") filter (where s."scored"), '{}') as "rewards",
       coalesce(array_agg(coalesce(r."success", false) order by r."sample") filter (where s."scored"), '{}') as "successes"
     from "groups" g join "rollouts" r on r."group_id" = g."id"
       cross join lateral (select r."state" = 'settled' and r."outcome" = 'completed' and r."reward" is not null as "scored") s
     where g."step_id" = any($1::text[])
     group by g."id" order by g."step_id", g."position"`,
    [stepIds],
  );
