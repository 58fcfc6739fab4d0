/**
 * Rollouts that end unscored together with what they belong to. The rows stay: what they did until then can be read, and the
 * sandboxes go as those of any settled rollout do.
 */
import { roomsReturned } from "./environments.ts";

/**
 * A CTE after one named `holder` (id, group_id, attempt, stage, state, claim; locked): those that another statement moved on after this one
 * began. What that wrote beside the rollout's row (leases, spans, attempts) can't be seen here, so it would stay: such rollouts are left
 * to the next send, which sees all of it. A plain read in the same statement shows the row as it was when the statement began.
 */
export const movedOn = `
moved_on as materialized (
  select h.id, h.group_id from holder h join rollouts was on was.id = h.id
  where (was.attempt, was.stage, was.state, was.claim) is distinct from (h.attempt, h.stage, h.state, h.claim)
)`;
/** How often such a statement is sent; each send waits for locks, so that those before it are done. */
export const maxSends = 10;

/**
 * CTEs after one named `doomed` (ord, id, ending, reason; rows locked by now, unsettled and not `moved_on`). They end in `moved`; read
 * `cancelledDone` in whatever comes last.
 */
export const cancelledRollouts = `
moved as (
  update rollouts r set state = 'settled', claim = r.claim + 1, worker_id = null, lease_until = null, not_before = null,
    held = false, outcome = 'cancelled', ending = d.ending, reason = d.reason, settled_at = clock_timestamp()
  from doomed d where r.id = d.id
  returning d.ord, r.group_id, r.id, r.attempt, r.stage, r.claim, r.ending, d.reason
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
  delete from pool_leases l using moved m where l.rollout_id = m.id returning l.resource, l.rollout_id
),
${roomsReturned}`;

/** SQL condition that holds once all of it is written. */
export const cancelledDone =
  "(select count(*) from attempts_ended) + (select count(*) from spans_ended) + (select count(*) from returned) >= 0";
