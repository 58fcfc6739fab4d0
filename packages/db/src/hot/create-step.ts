/** A new step with its groups and waiting rollouts in one statement; a second planner that creates the same step is refused. */
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { Purpose } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { newId } from "../new-id.ts";
import { eventLog } from "./event-log.ts";
import { freshGroups, groupValues, type NamedGroup, putGroups } from "./new-groups.ts";

export interface NewStep {
  readonly runId: string;
  /** The run's status as the planner saw it. */
  readonly status: RunStatus;
  /** Train groups drawn before, as the planner saw it; where others drew since, a planned train step is not made. */
  readonly drawn: number;
  readonly seed: number;
  readonly purpose: Purpose;
  readonly step: number;
  readonly source: "planned" | "driven";
  readonly batchId: string | null;
  readonly groups: readonly NamedGroup[];
  readonly groupSize: number;
}

const sql = `
with ${freshGroups(9, "$2")},
run as materialized (
  select id, serving_version from runs
  where id = $2 and status = $7 and ($3 <> 'train' or $5 <> 'planned' or groups_drawn = $8::int)
    and (select count(*) from learned) >= 0
  for no key update
),
step as (
  insert into steps (id, run_id, purpose, step, state, source, batch_id, policy_version)
  select $1, r.id, $3, $4, 'gathering', $5, $6, r.serving_version from run r
  on conflict (run_id, purpose, step) do nothing
  returning id, run_id, 0 as base
),
${putGroups(9)},
put_batch as (
  update batch_requests b set state = 'gathering', step_id = s.id from step s where b.id = $6 and b.state = 'requested' returning 1
),
happened as materialized (
  select 1 as ord, run_id, 'step-created' as type, null::text as rollout_id,
    case when $3 = 'train' and $5 = 'planned' then (select count(*) from put_groups)::int else 0 end as drawn,
    jsonb_build_object('type', 'step-created', 'stepId', id, 'step', $4::int, 'purpose', $3::text,
      'groups', (select count(*) from put_groups), 'rollouts', (select count(*) from put_attempts)) as body
  from step where (select count(*) from put_spans) + (select count(*) from put_batch) >= 0
),
${eventLog({ wakes: "true", counts: "max(drawn) as drawn", set: "groups_drawn = r.groups_drawn + c.drawn" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the step exists already, the run has moved, or groups were drawn since */
export async function createStep(pool: pg.Pool, step: NewStep): Promise<boolean> {
  const { rows } = await pool.query<{ made: boolean }>(sql, [
    newId(),
    step.runId,
    step.purpose,
    step.step,
    step.source,
    step.batchId,
    step.status,
    step.drawn,
    ...groupValues(step.groups, step.groupSize, () => step),
  ]);
  return rows[0]?.made ?? false;
}
