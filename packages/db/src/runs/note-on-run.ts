/** Notes of the planner in the run's log. */
import type pg from "pg";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";

const sql = `
with happened as materialized (
  select ord, $1::text as run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', level, 'message', message) as body
  from unnest($2::text[], $3::text[]) with ordinality as n (level, message, ord)
), ${eventLog()}
select count(sent) from notified`;

export async function noteOnRun(
  pool: pg.Pool,
  runId: string,
  notes: readonly { readonly level: "info" | "warning" | "error"; readonly message: string }[],
): Promise<void> {
  await pool.query(sql, [runId, notes.map((note) => note.level), notes.map((note) => cutText(note.message, 1000))]);
}
