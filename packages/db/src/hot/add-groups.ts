/**
 * More groups for a step that is gathering, in one statement. Invariants: what was drawn before is as the planner saw it, or nothing
 * is added, so two planners draw an instance once; no update of the step begins between its look at the groups and its write,
 * because both hold the step's row and compare the number of groups drawn.
 */
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { eventLog } from "./event-log.ts";
import { freshGroups, groupValues, type NamedGroup, putGroups } from "./new-groups.ts";

export interface MoreGroups {
  readonly runId: string;
  readonly status: RunStatus;
  readonly seed: number;
  readonly stepId: string;
  readonly drawn: number;
  readonly groups: readonly NamedGroup[];
  readonly groupSize: number;
}

const sql = `
with ${freshGroups(5, "$1")},
step_lock as materialized (
  select id, run_id, step from steps
  where id = $2 and run_id = $1 and state = 'gathering' and purpose = 'train' and (select count(*) from learned) >= 0
  for no key update
),
run as materialized (
  select id from runs where id = $1 and status = $3 and groups_drawn = $4::int and (select count(*) from step_lock) = 1
  for no key update
),
step as materialized (
  select s.id, s.run_id, s.step, coalesce((select max(position) from groups where step_id = s.id), -1) + 1 as base
  from step_lock s join run on run.id = s.run_id
),
${putGroups(5)},
happened as materialized (
  select 1 as ord, run_id, 'groups-added' as type, null::text as rollout_id, (select count(*) from put_groups)::int as drawn,
    jsonb_build_object('type', 'groups-added', 'stepId', id, 'step', step, 'groups', (select count(*) from put_groups),
      'rollouts', (select count(*) from put_attempts), 'replacing', (select count(replaces) from put_groups)) as body
  from step where (select count(*) from put_spans) >= 0
),
${eventLog({ wakes: "true", counts: "max(drawn) as drawn", set: "groups_drawn = r.groups_drawn + c.drawn" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the step is no longer gathering, the run has moved, or groups were drawn since */
export async function addGroups(pool: pg.Pool, more: MoreGroups): Promise<boolean> {
  const { runId, stepId, status, drawn, seed, groups, groupSize } = more;
  // An instance that is drawn again must not be sampled alike.
  const placeOf = (nth: number) => ({ seed, purpose: "train", step: `draw ${drawn + nth}` }) as const;
  const values = [runId, stepId, status, drawn, ...groupValues(groups, groupSize, placeOf)];
  const { rows } = await pool.query<{ made: boolean }>(sql, values);
  return rows[0]?.made ?? false;
}
