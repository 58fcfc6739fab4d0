/**
 * Groups that do not count towards their step: the mark, the end of what is unsettled of them, its leases and the events are one
 * statement. Invariants: only while the step gathers; what is settled stays as it is and can be read; twice is once.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import type { SetAsideReason } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { cutText } from "./clean-text.ts";
import { eventLog, rolloutStatus } from "./event-log.ts";

export interface GroupSetAside {
  readonly groupId: string;
  readonly stepId: string;
  readonly as: SetAsideReason;
  readonly reason: string;
}

/** How the unsettled rollouts of such a group end. */
const endingOf: Record<SetAsideReason, Ending> = {
  stale: "stale",
  "zero-variance": "not_needed",
  "not-needed": "not_needed",
  cancelled: "cancelled",
};

const sql = `
with asked as materialized (
  select * from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    as a (ord, group_id, step_id, set_aside, ending, reason)
),
holder as materialized (
  select id, group_id, state from rollouts where group_id = any($3::text[]) and run_id = $1 order by id for no key update
),
step_lock as materialized (
  select id from steps
  where id = any($4::text[]) and run_id = $1 and state = 'gathering' and (select count(*) from holder) >= 0
  order by id for no key update
),
aside as (
  update groups g set set_aside = a.set_aside, set_aside_at = now()
  from asked a join step_lock s on s.id = a.step_id
  where g.id = a.group_id and g.step_id = a.step_id and g.run_id = $1 and g.set_aside is null
  returning a.ord, g.id, g.step_id, g.set_aside, a.ending, a.reason
),
moved as (
  update rollouts r set state = 'settled', claim = r.claim + 1, worker_id = null, lease_until = null, not_before = null,
    outcome = 'cancelled', ending = a.ending, reason = a.reason, settled_at = clock_timestamp()
  from holder h join aside a on a.id = h.group_id
  where r.id = h.id and h.state <> 'settled'
  returning a.ord, a.id as group_id, r.id, r.attempt, r.stage, r.claim, r.ending, a.reason
),
attempts_ended as (
  update attempts a set ended_at = now(), reason = m.reason,
    turns = (select count(*) from transitions t where t.rollout_id = a.rollout_id and t.attempt = a.attempt)
  from moved m where a.rollout_id = m.id and a.attempt = m.attempt
  returning 1
),
spans_ended as (
  update stage_spans s set ended_at = coalesce(s.ended_at, now())
  from moved m where s.rollout_id = m.id and s.attempt = m.attempt and s.stage = m.stage
  returning 1
),
freed as (
  delete from pool_leases l using moved m where l.rollout_id = m.id returning l.resource
),
pool_lock as materialized (
  select resource from pools where resource in (select resource from freed) order by resource for no key update
),
returned as (
  update pools p set used = p.used - f.n from (select resource, count(*)::int as n from freed group by resource) f
  where p.resource = f.resource and (select count(*) from pool_lock) > 0
  returning 1
),
happened as materialized (
  select ord, $1::text as run_id, 'group-set-aside' as type, null::text as rollout_id,
    jsonb_build_object('type', 'group-set-aside', 'groupId', id, 'stepId', step_id, 'as', set_aside,
      'cancelled', (select count(*) from moved m where m.group_id = aside.id), 'reason', left(reason, 500)) as body
  from aside
  where (select count(*) from attempts_ended) + (select count(*) from spans_ended) + (select count(*) from returned) >= 0
  union all
  select ord, $1, 'rollout-status', id, ${rolloutStatus({
    rolloutId: "id",
    attempt: "attempt",
    stage: "stage",
    state: "'settled'",
    claim: "claim",
    outcome: "'cancelled'",
    ending: "ending",
    reason: "left(reason, 500)",
  })}
  from moved
),
${eventLog({ wakes: "true" })}
select array(select ord from aside) as ords, (select count(*)::int from moved) as cancelled,
  (select count(sent) from notified) as notified`;

/** @returns the groups that were set aside now, and how many of their rollouts that ended */
export async function setAsideGroups(
  pool: pg.Pool,
  runId: string,
  groups: readonly GroupSetAside[],
): Promise<{ readonly made: readonly GroupSetAside[]; readonly cancelled: number }> {
  if (groups.length === 0) return { made: [], cancelled: 0 };
  const { rows } = await pool.query<{ ords: number[]; cancelled: number }>({
    name: "set-aside",
    text: sql,
    values: [
      runId,
      groups.map((_, ord) => ord),
      groups.map(({ groupId }) => groupId),
      groups.map(({ stepId }) => stepId),
      groups.map((group) => group.as),
      groups.map((group) => endingOf[group.as]),
      groups.map(({ reason }) => cutText(reason, 500)),
    ],
  });
  const made = new Set(rows[0]?.ords ?? []);
  return { made: groups.filter((_, ord) => made.has(ord)), cancelled: rows[0]?.cancelled ?? 0 };
}
