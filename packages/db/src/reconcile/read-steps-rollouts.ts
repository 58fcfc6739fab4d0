/** Rollouts of steps with their groups, as the planner sees them; read by one statement, so that none is seen without the other. */
import { endingNames } from "@rolldeck/contracts/endings";
import { rolloutOutcomes, rolloutStates, stages } from "@rolldeck/contracts/lifecycle";
import {
  type GroupSnapshot,
  type Resource,
  type RolloutSnapshot,
  resources,
  setAsideReasons,
} from "@rolldeck/contracts/plan";
import type pg from "pg";
import { z } from "zod";
import { ms } from "./milliseconds.ts";

const rolloutsSql = `
select r.id, r.step_id, r.group_id, g.task_set, r.sample, r.attempt, r.stage, r.state, r.claim, r.deliveries,
  ${ms("r.lease_until")} as lease_until, ${ms("r.not_before")} as not_before, ${ms("r.ready_at")} as ready_at,
  ${ms("r.stage_started_at")} as stage_started_at, r.ending, r.outcome, r.reward, r.reason,
  r.infrastructure_failures, r.first_attempt, r.evaluate_failures,
  r.first_version, ${ms("r.settled_at")} as settled_at, r.held,
  case when r.sample = 0 then json_build_object('split', g.split, 'instanceIndex', g.instance_index, 'setAside', g.set_aside,
    'replaces', g.replaces, 'expectedMs', g.expected_ms, 'held', g.held) end as group,
  coalesce(l.holds, 0) as holds
from rollouts r join groups g on g.id = r.group_id
-- One look each: how many rows a step has is not known to the database until it next counts them, and then it joins row by row.
left join lateral (
  select bit_or(case l.resource ${resources.map((name, place) => `when '${name}' then ${1 << place}`).join(" ")} end) as holds
  from pool_leases l where l.rollout_id = r.id and r.state <> 'settled'
) l on true
where r.step_id = any($1::text[])
order by g.position, r.group_id, r.sample`;

const time = z.number().nullable();
const RolloutRow = z.object({
  id: z.string(),
  step_id: z.string(),
  group_id: z.string(),
  task_set: z.int(),
  sample: z.int(),
  attempt: z.int(),
  stage: z.enum(stages),
  state: z.enum(rolloutStates),
  claim: z.int(),
  deliveries: z.int(),
  lease_until: time,
  not_before: time,
  ready_at: z.number(),
  stage_started_at: time,
  ending: z.enum(endingNames).nullable(),
  outcome: z.enum(rolloutOutcomes).nullable(),
  reward: z.number().nullable(),
  reason: z.string().nullable(),
  infrastructure_failures: z.int(),
  first_attempt: z.int(),
  evaluate_failures: z.int(),
  first_version: z.int().nullable(),
  settled_at: time,
  held: z.boolean(),
  group: z
    .object({
      split: z.enum(["train", "evaluate"]),
      instanceIndex: z.int(),
      setAside: z.enum(setAsideReasons).nullable(),
      replaces: z.string().nullable(),
      expectedMs: z.object({ init: z.number(), run: z.number(), evaluate: z.number() }).nullable(),
      held: z.boolean(),
    })
    .nullable(),
  /** Bit n stands for the nth of `resources`. */
  holds: z.int(),
});
type RolloutRow = z.infer<typeof RolloutRow>;

export interface StepsRollouts {
  readonly rollouts: readonly RolloutSnapshot[];
  readonly groups: readonly GroupSnapshot[];
}

export async function readStepsRollouts(pool: pg.Pool, stepIds: readonly string[]): Promise<StepsRollouts> {
  const { rows } = await pool.query({ name: "snapshot-rollouts", text: rolloutsSql, values: [stepIds] });
  const found = z.array(RolloutRow).parse(rows);
  return { rollouts: found.map(rolloutOf), groups: found.flatMap(groupOf) };
}

const groupOf = ({ group, group_id, step_id, task_set }: RolloutRow): GroupSnapshot[] => {
  if (group === null) return [];
  const { split, instanceIndex, ...rest } = group;
  return [{ groupId: group_id, stepId: step_id, instance: { taskSet: task_set, split, instanceIndex }, ...rest }];
};

const heldBits: readonly (readonly Resource[])[] = Array.from({ length: 1 << resources.length }, (_, bits) =>
  resources.filter((_resource, place) => (bits & (1 << place)) !== 0),
);

const rolloutOf = (row: RolloutRow): RolloutSnapshot => ({
  rolloutId: row.id,
  stepId: row.step_id,
  groupId: row.group_id,
  taskSet: row.task_set,
  sample: row.sample,
  attempt: row.attempt,
  stage: row.stage,
  state: row.state,
  claim: row.claim,
  deliveries: row.deliveries,
  leaseUntil: row.lease_until,
  notBefore: row.not_before,
  readyAt: row.ready_at,
  stageStartedAt: row.stage_started_at,
  ending: row.ending,
  outcome: row.outcome,
  reward: row.reward,
  reason: row.reason,
  infrastructureFailures: row.infrastructure_failures,
  firstAttempt: row.first_attempt,
  evaluateFailures: row.evaluate_failures,
  holds: heldBits[row.holds] ?? [],
  firstVersion: row.first_version,
  settledAt: row.settled_at,
  held: row.held,
});
