/**
 * A gathered step's update begins, in one statement; groups that are no part of it move to the next step, which is made where it is
 * not there. Invariants: a group and its rollouts belong to one step at any moment; nothing of what stays is unsettled; no group
 * was drawn since the planner looked, or nothing happens. Rollouts that move go on as they are: claims, leases and turns are theirs.
 */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type pg from "pg";
import { newId } from "../new-id.ts";
import { eventLog } from "./event-log.ts";

export interface UpdateBegin {
  readonly runId: string;
  readonly stepId: string;
  /** Train groups drawn, as the planner saw it. */
  readonly drawn: number;
  readonly leave: { readonly step: number; readonly groupIds: readonly string[] } | null;
}

const sql = `
with holder as materialized (
  select id from rollouts where group_id = any($3::text[]) and run_id = $1 order by id for no key update
),
step_lock as materialized (
  select id from steps where id = $2 and run_id = $1 and state = 'gathering' and (select count(*) from holder) >= 0
  for no key update
),
run as materialized (
  select id, serving_version from runs where id = $1 and groups_drawn = $4::int and (select count(*) from step_lock) = 1
  for no key update
),
leaving as materialized (
  select g.id, row_number() over (order by g.position) - 1 as place from groups g, run
  where g.id = any($3::text[]) and g.step_id = $2 and g.set_aside is null
),
begun as (
  update steps s set state = 'updating', claim = s.claim + 1, worker_id = null,
    lease_until = now() + $5::int * interval '1 millisecond',
    gathered_at = coalesce(s.gathered_at, (
      select max(r.settled_at) from rollouts r join groups g on g.id = r.group_id
      where r.step_id = s.id and g.set_aside is null and g.id <> all($3::text[])))
  from run
  where s.id = $2 and s.run_id = run.id and s.state = 'gathering'
    and (select count(*) from leaving) = cardinality($3::text[])
    and not exists (select from rollouts r where r.step_id = s.id and r.state <> 'settled' and r.group_id <> all($3::text[]))
    and not exists (
      select from steps n where n.run_id = s.run_id and n.purpose = 'train' and n.step = $7::int and n.state <> 'gathering')
  returning s.id, s.run_id, s.step, s.purpose
),
next_step as (
  insert into steps (id, run_id, purpose, step, state, source, policy_version)
  select $6, b.run_id, 'train', $7::int, 'gathering', 'planned', run.serving_version from begun b, run where $7::int is not null
  on conflict (run_id, purpose, step) do nothing
  returning id, 0 as base
),
target as materialized (
  select id, base from next_step
  union all
  select s.id, coalesce((select max(position) from groups where step_id = s.id), -1) + 1 from steps s, begun b
  where s.run_id = b.run_id and s.purpose = 'train' and s.step = $7::int and (select count(*) from next_step) = 0
),
groups_moved as (
  update groups g set step_id = t.id, position = t.base + l.place from leaving l, target t, begun where g.id = l.id
  returning g.id, g.position
),
rollouts_moved as (
  update rollouts r set step_id = t.id from holder h, target t, begun where r.id = h.id
  returning 1
),
packed as (
  select (position - first) / 40 as pack, jsonb_agg(id order by position) as ids
  from (select id, position, min(position) over () as first from groups_moved) m group by 1
),
happened as materialized (
  select 1 as ord, run_id, 'step-status' as type, null::text as rollout_id,
    jsonb_build_object('type', 'step-status', 'stepId', id, 'step', step, 'purpose', purpose, 'from', 'gathering',
      'to', 'updating', 'reason', null) as body
  from begun
  union all
  select 2, b.run_id, 'step-created', null, jsonb_build_object('type', 'step-created', 'stepId', n.id, 'step', $7::int,
    'purpose', 'train', 'groups', (select count(*) from groups_moved), 'rollouts', (select count(*) from rollouts_moved))
  from begun b, next_step n
  union all
  select 3 + p.pack, b.run_id, 'groups-moved', null, jsonb_build_object('type', 'groups-moved', 'fromStepId', b.id,
    'toStepId', t.id, 'step', $7::int, 'groupIds', p.ids)
  from begun b, target t, packed p where (select count(*) from rollouts_moved) >= 0
),
${eventLog({ wakes: "$7::int is not null" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the step, its groups or the number of groups drawn were not (or no longer) as the planner saw them */
export async function beginUpdate(pool: pg.Pool, update: UpdateBegin): Promise<boolean> {
  const { runId, stepId, drawn, leave } = update;
  const { rows } = await pool.query<{ made: boolean }>({
    name: "begin-update",
    text: sql,
    values: [runId, stepId, leave?.groupIds ?? [], drawn, leaseMs, newId(), leave?.step ?? null],
  });
  return rows[0]?.made ?? false;
}
