/**
 * How the planner ends steps: only when none of their rollouts is left unsettled; it fences a step's update. A driven step is taken
 * when it is done here: its update is its trainer's.
 */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { StepState } from "@rolldeck/contracts/lifecycle";
import { hasEdge, stepEdges } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { cutText } from "./clean-text.ts";
import { eventLog } from "./event-log.ts";

const sql = `
with moved as (
  update steps s set state = $4::text, claim = s.claim + 1, worker_id = null, reason = coalesce($5::text, s.reason),
    lease_until = null,
    gathered_at = coalesce(s.gathered_at, (select max(settled_at) from rollouts where step_id = s.id)),
    ended_at = now()
  where s.id = $2 and s.run_id = $1 and s.state = $3::text
    and not exists (select from rollouts where step_id = s.id and state <> 'settled')
  returning s.id, s.run_id, s.step, s.purpose, s.batch_id
),
put_batch as (
  update batch_requests b set state = case when $4::text = 'done' then 'done' else 'cancelled' end
  from moved m where b.id = m.batch_id returning 1
),
happened as materialized (
  select 1 as ord, run_id, 'step-status' as type, null::text as rollout_id,
    jsonb_build_object('type', 'step-status', 'stepId', id, 'step', step, 'purpose', purpose, 'from', $3::text, 'to', $4::text,
      'reason', $5::text) as body,
    case when purpose = 'train' and $4::text = 'done' then step end as taken
  from moved where (select count(*) from put_batch) >= 0
),
${eventLog({ counts: "max(taken) as taken", wakes: "true", set: "step = greatest(r.step, c.taken)" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the step was not (or no longer) as the planner saw it */
export async function endStep(
  pool: pg.Pool,
  runId: string,
  move: { readonly stepId: string; readonly from: StepState; readonly to: StepState; readonly reason: string | null },
): Promise<boolean> {
  if (move.to === "updating" || !hasEdge(stepEdges, move.from, move.to)) return false;
  const reason = move.reason === null ? null : cutText(move.reason, 500);
  const { rows } = await pool.query<{ made: boolean }>(sql, [runId, move.stepId, move.from, move.to, reason]);
  return rows[0]?.made ?? false;
}

/** The update's lease is past: it may be queued again, and its old worker is fenced. @returns whether it was past */
export async function redeliverUpdate(pool: pg.Pool, runId: string, stepId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update steps set claim = claim + 1, worker_id = null, lease_until = now() + $3::int * interval '1 millisecond'
     where id = $2 and run_id = $1 and state = 'updating' and (lease_until is null or lease_until <= now())`,
    [runId, stepId, leaseMs],
  );
  return rowCount === 1;
}
