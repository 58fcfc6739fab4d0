/** How many rollouts of a run may run at once, as adaptive concurrency moves it. */
import type pg from "pg";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";

const sql = `
with run as materialized (
  select id from runs where id = $1 and run_limit is not distinct from $2::int for no key update
),
happened as materialized (
  select 1 as ord, id as run_id, 'run-limit-changed' as type, null::text as rollout_id,
    jsonb_build_object('type', 'run-limit-changed', 'from', $2::int, 'to', $3::int, 'reason', $4::text) as body
  from run
),
${eventLog({
  wakes: "true",
  set: `run_limit = $3::int, run_limit_since = now(), run_limit_reason = case when $3::int is not null then $4::text end`,
})}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/** @returns false when the limit was not `from` any more */
export async function setRunLimit(
  pool: pg.Pool,
  runId: string,
  limit: { readonly from: number | null; readonly to: number | null; readonly reason: string },
): Promise<boolean> {
  const values = [runId, limit.from, limit.to, cutText(limit.reason, 500)];
  const { rows } = await pool.query<{ made: boolean }>(sql, values);
  return rows[0]?.made ?? false;
}
