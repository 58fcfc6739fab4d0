/** A run's status moves along the edges of its lifecycle only, each with its event and wake in the same write. */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, type RunStatus, runEdges, runStatuses, sourcesOf } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";

const sql = `
with before as materialized (
  select id, status from runs where id = $1 for no key update
),
happened as materialized (
  select 1 as ord, id as run_id, 'run-status' as type, null::text as rollout_id,
    jsonb_build_object('type', 'run-status', 'from', status, 'to', $2::text, 'reason', $3::text) as body
  from before where status = any($4::text[])
),
${eventLog({
  wakes: "true",
  // Winding down ends with the reason it began with.
  set: `status = $2::text, status_since = now(),
    reason = coalesce($3::text, case when (r.status, $2::text) in (('stopping', 'stopped'), ('pausing', 'paused')) then r.reason end),
    started_at = case when $2::text = 'running' then coalesce(r.started_at, now()) else r.started_at end,
    ended_at = case when $2::text = any($5::text[]) then now() else r.ended_at end`,
})}
select status as before, (select count(*) from bumped) = 1 as moved, (select count(sent) from notified) as notified from before`;

const Row = z.object({ before: z.enum(runStatuses), moved: z.boolean() });

/**
 * Moves a run; asking for the status it has changes nothing.
 * @returns the status it has now @throws NotFoundError, ConflictError when the lifecycle has no such edge
 */
export async function moveRun(pool: pg.Pool, runId: string, to: RunStatus, reason: string | null): Promise<RunStatus> {
  const { before, moved } = await tryMove(pool, runId, { from: sourcesOf(runEdges, to), to, reason });
  if (moved || before === to) return to;
  throw new ConflictError(`a run that is ${before} can't become ${to}`);
}

/** The same for a planner that saw the run in `from`. @returns whether it moved */
export async function moveRunFrom(
  pool: pg.Pool,
  runId: string,
  move: { readonly from: RunStatus; readonly to: RunStatus; readonly reason: string | null },
): Promise<boolean> {
  if (!runEdges[move.from].includes(move.to)) return false;
  return (await tryMove(pool, runId, { ...move, from: [move.from] })).moved;
}

async function tryMove(
  pool: pg.Pool,
  runId: string,
  { from, to, reason }: { from: readonly RunStatus[]; to: RunStatus; reason: string | null },
): Promise<z.infer<typeof Row>> {
  const words = reason === null ? null : cutText(reason, 500);
  const { rows } = await pool.query(sql, [runId, to, words, from, endedRunStatuses]);
  if (rows.length === 0) throw new NotFoundError("run", runId);
  return Row.parse(rows[0]);
}
