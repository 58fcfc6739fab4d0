/**
 * Groups that do not count towards their step: the mark, the end of what is unsettled of them, its leases and the events are one
 * statement. Invariants: only while the step gathers; what is settled stays as it is and can be read; twice is once; a group of which
 * a rollout moved on since the statement began is left as it is and sent again.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import type { SetAsideReason } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { cancelledDone, cancelledRollouts, maxSends, movedOn } from "./cancelled-rollouts.ts";
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
  select id, group_id, attempt, stage, state, claim from rollouts
  where group_id = any($3::text[]) and run_id = $1 order by id for no key update
),
${movedOn},
step_lock as materialized (
  select id from steps
  where id = any($4::text[]) and run_id = $1 and state = 'gathering' and (select count(*) from holder) >= 0
  order by id for no key update
),
aside as (
  update groups g set set_aside = a.set_aside, set_aside_at = now()
  from asked a join step_lock s on s.id = a.step_id
  where g.id = a.group_id and g.step_id = a.step_id and g.run_id = $1 and g.set_aside is null
    and not exists (select from moved_on m where m.group_id = g.id)
  returning a.ord, g.id, g.step_id, g.set_aside, a.ending, a.reason
),
doomed as materialized (
  select a.ord, h.id, a.ending, a.reason from holder h join aside a on a.id = h.group_id where h.state <> 'settled'
),
${cancelledRollouts},
happened as materialized (
  select ord, $1::text as run_id, 'group-set-aside' as type, null::text as rollout_id,
    jsonb_build_object('type', 'group-set-aside', 'groupId', id, 'stepId', step_id, 'as', set_aside,
      'cancelled', (select count(*) from moved m where m.group_id = aside.id), 'reason', left(reason, 500)) as body
  from aside
  where ${cancelledDone}
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
select array(select ord from aside) as ords,
  array(select ord from asked a where exists (select from moved_on m where m.group_id = a.group_id)) as met,
  (select count(*)::int from moved) as cancelled, (select count(sent) from notified) as notified`;

/** @returns the groups that were set aside now, and how many of their rollouts that ended */
export async function setAsideGroups(
  pool: pg.Pool,
  runId: string,
  groups: readonly GroupSetAside[],
): Promise<{ readonly made: readonly GroupSetAside[]; readonly cancelled: number }> {
  const made: GroupSetAside[] = [];
  let cancelled = 0;
  let left = groups;
  for (let send = 0; send < maxSends && left.length > 0; send++) {
    const sent = await sendOnce(pool, runId, left);
    made.push(...sent.made);
    cancelled += sent.cancelled;
    left = sent.met;
  }
  return { made, cancelled };
}

async function sendOnce(pool: pg.Pool, runId: string, groups: readonly GroupSetAside[]) {
  const { rows } = await pool.query<{ ords: number[]; met: number[]; cancelled: number }>({
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
  const { ords = [], met = [], cancelled = 0 } = rows[0] ?? {};
  const at = (places: readonly number[]) => groups.filter((_, ord) => places.includes(ord));
  return { made: at(ords), met: at(met), cancelled };
}
