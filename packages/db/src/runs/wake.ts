/** `wake` counts what the run's planner must see; `handled_wake` what it has seen. Behind = wake > handled_wake. */
import type pg from "pg";
import { z } from "zod";
import { raiseWake } from "../hot/event-log.ts";

/** Raises the run's wake: something changed that its planner must see. */
export async function wakeRun(pool: pg.Pool, runId: string): Promise<void> {
  await pool.query(`update runs r set ${raiseWake("true")} where r.id = $1`, [runId]);
}

const handledSql = `
update runs r set handled_wake = greatest(r.handled_wake, $2),
  -- What is still behind counts from here: the planner is at it.
  woken_at = case when r.wake > $2 then now() else r.woken_at end,
  wake_at = to_timestamp($3::float8 / 1000)
where r.id = $1
returning r.wake`;

const Wake = z.object({ wake: z.int() });

/** The planner has handled `wake`; `wakeAt` (ms, database clock) is its next timer. @returns the run's present wake */
export async function markHandled(
  pool: pg.Pool,
  runId: string,
  wake: number,
  wakeAt: number | null,
): Promise<{ wake: number }> {
  const { rows } = await pool.query(handledSql, [runId, wake, wakeAt]);
  // A run deleted meanwhile is handled.
  return rows.length === 0 ? { wake } : Wake.parse(rows[0]);
}

// Paused runs keep their places; their past leases are nobody's business until they go on.
const behindSql = `
select id from runs
where (wake > handled_wake and woken_at < now() - interval '1 second') or wake_at <= now()
  or (prepare_lease_until <= now() and status in ('preparing', 'running'))
union
select r.run_id from rollouts r join runs u on u.id = r.run_id
where r.state in ('queued', 'active') and r.lease_until <= now() and u.status <> 'paused'
union
select s.run_id from steps s join runs u on u.id = s.run_id
where s.state = 'updating' and s.lease_until <= now() and u.status <> 'paused'`;

/** Runs that need a plan: behind for over 1 s, a timer due, or a lease past. */
export async function runsBehind(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(behindSql);
  return rows.map((row) => row.id);
}
