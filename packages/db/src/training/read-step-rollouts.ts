/** What an update trains on, and what an outside trainer takes back. */
import { endingNames } from "@rolldeck/contracts/endings";
import { rolloutOutcomes } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { readTrajectories, type Trajectory } from "../hot/read-trajectory.ts";

const Row = z.object({
  rolloutId: z.string(),
  groupId: z.string(),
  /** Position of the group in its step. */
  position: z.int(),
  taskSet: z.int(),
  instanceIndex: z.int(),
  instanceId: z.string(),
  sample: z.int(),
  attempt: z.int(),
  outcome: z.enum(rolloutOutcomes),
  ending: z.enum(endingNames),
  reward: z.number().nullable(),
  success: z.boolean().nullable(),
  turns: z.int(),
  sampledTokens: z.int(),
  /** Policy version that served when its run stage was first taken; null where none was known. */
  firstVersion: z.int().nullable(),
  /** Database clock, milliseconds. */
  settledAtMs: z.number(),
});
export type StepRollout = Readonly<z.infer<typeof Row>> & { readonly trajectory: Trajectory };

const columns = `r.id as "rolloutId", r.group_id as "groupId", g.position, g.task_set as "taskSet",
  g.instance_index as "instanceIndex", g.instance_id as "instanceId", r.sample, r.attempt, r.outcome, r.ending, r.reward,
  r.success, r.turns, r.sampled_tokens as "sampledTokens", r.first_version as "firstVersion",
  (extract(epoch from r.settled_at) * 1000)::float8 as "settledAtMs"`;

/**
 * Settled rollouts of a step with the trajectory of their last attempt, by group position and sample: without groups that were
 * set aside and without what was started beyond what the step needs.
 */
export async function readStepRollouts(pool: pg.Pool, stepId: string): Promise<StepRollout[]> {
  const { rows } = await pool.query(
    `select ${columns} from rollouts r join groups g on g.id = r.group_id
     where r.step_id = $1 and r.state = 'settled' and g.set_aside is null and r.ending <> 'not_needed' order by g.position, r.sample`,
    [stepId],
  );
  return withTrajectories(pool, rows);
}

/** The same for some rollouts, in the order asked. */
export async function readSettledRollouts(pool: pg.Pool, rolloutIds: readonly string[]): Promise<StepRollout[]> {
  const { rows } = await pool.query(
    `select ${columns} from unnest($1::text[]) with ordinality w (id, place) join rollouts r on r.id = w.id
     join groups g on g.id = r.group_id where r.state = 'settled' order by w.place`,
    [rolloutIds],
  );
  return withTrajectories(pool, rows);
}

async function withTrajectories(pool: pg.Pool, found: readonly unknown[]): Promise<StepRollout[]> {
  const rollouts = z.array(Row).parse(found);
  const trajectories = await readTrajectories(pool, rollouts);
  return rollouts.map((rollout, place) => ({
    ...rollout,
    trajectory: trajectories[place] ?? { segments: [], turns: [] },
  }));
}
