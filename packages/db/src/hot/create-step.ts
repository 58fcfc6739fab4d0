/** A new step with its groups and waiting rollouts in one statement; a second planner that creates the same step is refused. */
import { createHash } from "node:crypto";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { NewGroup, Purpose } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { newId } from "../new-id.ts";
import { eventLog } from "./event-log.ts";

export interface NewStep {
  readonly runId: string;
  /** The run's status as the planner saw it. */
  readonly status: RunStatus;
  readonly seed: number;
  readonly purpose: Purpose;
  readonly step: number;
  readonly source: "planned" | "driven";
  readonly batchId: string | null;
  readonly groups: readonly (NewGroup & { readonly task: string; readonly instanceId: string })[];
  readonly groupSize: number;
}

/** Seed of one rollout: the same for the same place of the same run seed, so that runs can be compared. 31 bits. */
export function rolloutSeed(of: {
  seed: number;
  purpose: Purpose;
  step: number;
  group: NewGroup;
  sample: number;
}): number {
  const { seed, purpose, step, group, sample } = of;
  const place = [seed, purpose, step, group.taskSet, group.split, group.instanceIndex, sample].join(" ");
  return createHash("sha256").update(place).digest().readUInt32LE(0) >>> 1;
}

const sql = `
with step as (
  insert into steps (id, run_id, purpose, step, state, source, batch_id, policy_version)
  select $1, r.id, $3, $4, 'gathering', $5, $6, r.serving_version from runs r where r.id = $2 and r.status = $7
  on conflict (run_id, purpose, step) do nothing
  returning id, run_id
),
put_groups as (
  insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id)
  select g.id, s.run_id, s.id, g.position, g.task_set, g.task, g.split, g.instance_index, g.instance_id
  from step s, unnest($8::text[], $9::int[], $10::int[], $11::text[], $12::text[], $13::int[], $14::text[])
    as g (id, position, task_set, task, split, instance_index, instance_id)
  returning 1
),
put_rollouts as (
  insert into rollouts (id, run_id, step_id, group_id, sample, seed)
  select r.id, s.run_id, s.id, r.group_id, r.sample, r.seed
  from step s, unnest($15::text[], $16::text[], $17::int[], $18::int[]) as r (id, group_id, sample, seed)
  returning id, run_id
),
put_attempts as (
  insert into attempts (rollout_id, attempt) select id, 1 from put_rollouts returning 1
),
put_spans as (
  insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at) select id, 1, 'init', run_id, now() from put_rollouts
  returning 1
),
put_batch as (
  update batch_requests b set state = 'gathering', step_id = s.id from step s where b.id = $6 and b.state = 'requested' returning 1
),
happened as materialized (
  select 1 as ord, run_id, 'step-created' as type, null::text as rollout_id,
    jsonb_build_object('type', 'step-created', 'stepId', id, 'step', $4::int, 'purpose', $3::text,
      'groups', (select count(*) from put_groups), 'rollouts', (select count(*) from put_attempts)) as body
  from step where (select count(*) from put_spans) + (select count(*) from put_batch) >= 0
),
${eventLog({ wakes: "true" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the step exists already or the run has moved */
export async function createStep(pool: pg.Pool, step: NewStep): Promise<boolean> {
  const groups = step.groups.map((group, position) => ({ ...group, id: newId(), position }));
  const rollouts = groups.flatMap((group) =>
    Array.from({ length: step.groupSize }, (_, sample) => ({
      id: newId(),
      groupId: group.id,
      sample,
      seed: rolloutSeed({ ...step, group, sample }),
    })),
  );
  const { rows } = await pool.query<{ made: boolean }>(sql, [
    newId(),
    step.runId,
    step.purpose,
    step.step,
    step.source,
    step.batchId,
    step.status,
    groups.map((group) => group.id),
    groups.map((group) => group.position),
    groups.map((group) => group.taskSet),
    groups.map((group) => group.task),
    groups.map((group) => group.split),
    groups.map((group) => group.instanceIndex),
    groups.map((group) => group.instanceId),
    rollouts.map((rollout) => rollout.id),
    rollouts.map((rollout) => rollout.groupId),
    rollouts.map((rollout) => rollout.sample),
    rollouts.map((rollout) => rollout.seed),
  ]);
  return rows[0]?.made ?? false;
}
