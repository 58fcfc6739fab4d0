/** Workers that hold leases: what becomes of them, each change under the claim of their placement. */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { Placed } from "@rolldeck/contracts/ports/fleet-store";
import type pg from "pg";
import { fleetNote, workerText } from "./fleet-note.ts";

/** One that served for so long before it ended begins to be counted anew. */
const servedLong = "interval '10 minutes'";

/** @returns ids of those whose claim still holds */
export async function renewPlacements(pool: pg.Pool, workers: readonly Placed[]): Promise<Set<string>> {
  if (workers.length === 0) return new Set();
  const { rows } = await pool.query<{ id: string }>(
    `update fleet_workers w set lease_until = now() + $3::int * interval '1 millisecond'
     from unnest($1::text[], $2::bigint[]) as p (id, claim)
     where w.id = p.id and w.claim = p.claim and w.state in ('starting', 'ready', 'stopping') returning w.id`,
    [workers.map((one) => one.id), workers.map((one) => one.claim), leaseMs],
  );
  return new Set(rows.map((row) => row.id));
}

/** @returns false where the claim is lost: the container is nobody's */
export async function workerStarted(
  pool: pg.Pool,
  worker: Placed,
  container: { readonly containerId: string; readonly url: string },
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update fleet_workers set container_id = $3, url = $4
     where id = $1 and claim = $2 and state in ('starting', 'ready', 'stopping')`,
    [worker.id, worker.claim, container.containerId, container.url],
  );
  return rowCount === 1;
}

const readySql = `
with changed as (
  update fleet_workers w set state = 'ready', boot_id = $3, ready_at = coalesce(w.ready_at, now()), reason = null
  where w.id = $1 and w.claim = $2 and w.state in ('starting', 'ready')
  returning w.*
),
${fleetNote(`${workerText} || ' on host ' || host || ' is ready'`)}
select (select count(sent) from notified) as notified from changed`;

export async function workerReady(pool: pg.Pool, worker: Placed, bootId: string): Promise<boolean> {
  return (await pool.query(readySql, [worker.id, worker.claim, bootId])).rowCount === 1;
}

const endedSql = `
with changed as (
  update fleet_workers w set state = 'lost', reason = $3, url = null,
    failures = case when not $4 then w.failures when w.ready_at < now() - ${servedLong} then 1 else w.failures + 1 end
  where w.id = $1 and w.claim = $2 and w.state in ('starting', 'ready')
  returning w.*
),
${fleetNote(`${workerText} || ' on host ' || host || ' is lost: ' || (reason ->> 'message')`, "'warning'")}
select (select count(sent) from notified) as notified from changed`;

export async function workerEnded(
  pool: pg.Pool,
  worker: Placed,
  reason: FleetReason,
  counts: boolean,
): Promise<boolean> {
  return (await pool.query(endedSql, [worker.id, worker.claim, reason, counts])).rowCount === 1;
}

const goneSql = `
with changed as (
  update fleet_workers w set
    state = case when w.wanted and w.reason ->> 'code' in ('yields', 'regroups') then 'queued' else 'stopped' end,
    ended_at = case when w.wanted and w.reason ->> 'code' in ('yields', 'regroups') then null else now() end,
    lease_until = null, container_id = null, url = null, boot_id = null
  where w.id = $1 and w.claim = $2 and w.state = 'stopping'
  returning w.*
),
released as (delete from gpu_leases l using changed c where l.worker_id = c.id returning 1),
${fleetNote(`${workerText} || ' on host ' || host || ' has stopped'`)}
select (select count(*) from released) as released, (select count(sent) from notified) as notified from changed`;

export async function workerGone(pool: pg.Pool, worker: Placed): Promise<boolean> {
  return (await pool.query(goneSql, [worker.id, worker.claim])).rowCount === 1;
}
