/** Draining: what is begun comes to its end and nothing new is started; the planner pauses the run when all of it has. */
import type pg from "pg";
import { eventLog } from "../hot/event-log.ts";

const sql = `
with run as materialized (
  select id from runs where id = $1 and draining <> $2::boolean and (not $2::boolean or status in ('preparing', 'running'))
  for no key update
),
happened as materialized (
  select 1 as ord, id as run_id, 'drain-changed' as type, null::text as rollout_id,
    jsonb_build_object('type', 'drain-changed', 'draining', $2::boolean, 'by', $3::text, 'reason', $4::text) as body
  from run
),
${eventLog({ wakes: "true", set: "draining = $2::boolean" })}
select (select count(sent) from notified) as notified`;

/** Once for all that ask alike; only a run that prepares or runs can be drained. @param by who asks, for the run's log */
export async function setDraining(
  pool: pg.Pool,
  runId: string,
  asked: { readonly draining: boolean; readonly by: string; readonly reason: string | null },
): Promise<void> {
  await pool.query(sql, [runId, asked.draining, asked.by, asked.reason]);
}
