/**
 * What the placement planner decided, as one statement each. Invariants: an action whose worker has moved on changes nothing; a
 * placement takes all of its devices or none, and none that anybody has.
 */
import type { FleetAction, FleetReason } from "@rolldeck/contracts/fleet";
import { fleetWorkerEdges } from "@rolldeck/contracts/fleet";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { sourcesOf } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { hasCode } from "../reads/rows.ts";
import { fleetNote, workerText } from "./fleet-note.ts";

const uniqueViolation = "23505";
/** Milliseconds after a failure before it is started again, doubled by each. */
const backOffMs = 2_000;

const placeSql = `
with changed as (
  update fleet_workers w set state = 'starting', host = $2, claim = w.claim + 1, reason = null, not_before = null,
    lease_until = now() + $4::int * interval '1 millisecond', placed_at = now(), ready_at = null,
    container_id = null, url = null, boot_id = null
  where w.id = $1 and w.state = 'queued' and w.wanted and w.devices = cardinality($3::text[])
    and not exists (select from gpu_leases l where l.device_id = any($3))
    and (select count(*) from fleet_devices d join fleet_hosts h on h.name = d.host
      where d.id = any($3) and d.host = $2 and d.present and h.state = 'ready' and not h.draining) = cardinality($3::text[])
  returning w.*
),
taken as (
  insert into gpu_leases (device_id, worker_id, claim) select d, c.id, c.claim from changed c, unnest($3::text[]) as d
  returning 1
),
${fleetNote(`${workerText} || ' starts on host ' || host`)}
select claim, (select count(*) from taken) as taken, (select count(sent) from notified) as notified from changed`;

const queueSql = `update fleet_workers set reason = $2 where id = $1 and state = 'queued' returning 0 as claim`;

const released = `released as (delete from gpu_leases l using changed c where l.worker_id = c.id returning 1)`;
const oneOf = (states: readonly string[]): string => `w.state in (${states.map((state) => `'${state}'`).join(", ")})`;
/** @param set assignments, with `$2` the reason @param from SQL condition: where it may come from */
const moveSql = (set: string, from: string, release: boolean, message: string, level: string): string => `
with changed as (
  update fleet_workers w set reason = $2, ${set}
  where w.id = $1 and ${from}
  returning w.*
),
${release ? `${released},` : ""}
${fleetNote(message, level)}
select 0 as claim, ${release ? "(select count(*) from released) as released," : ""} (select count(sent) from notified) as notified
from changed`;

const because = `reason ->> 'message'`;
const over = `ended_at = now(), lease_until = null, url = null`;
const sql: Record<Exclude<FleetAction["type"], "place">, string> = {
  queue: queueSql,
  stop: moveSql(
    `state = case when w.state = 'queued' then 'stopped' else 'stopping' end,
     ended_at = case when w.state = 'queued' then now() end`,
    oneOf(["queued", ...sourcesOf(fleetWorkerEdges, "stopping")]),
    false,
    `case when wanted then ${workerText} || ' stops: ' || (${because}) end`,
    "'warning'",
  ),
  restart: moveSql(
    `state = 'queued', restarts = w.restarts + 1, lease_until = null, container_id = null, url = null, boot_id = null,
     not_before = case when w.failures > 0 then now() + ${backOffMs} * power(2, least(w.failures - 1, 5)) * interval '1 millisecond' end`,
    oneOf(sourcesOf(fleetWorkerEdges, "queued").filter((state) => state !== "stopping")),
    true,
    `${workerText} || ' is started again: ' || (${because})`,
    "'warning'",
  ),
  refuse: moveSql(
    `state = 'refused', ${over}`,
    // Of a placement only that one: the next may be on a host that has what it needs.
    `case when $3::bigint is null then w.state = 'queued' else w.claim = $3 and ${oneOf(sourcesOf(fleetWorkerEdges, "refused"))} end`,
    true,
    `${workerText} || ' ' || (${because})`,
    "'error'",
  ),
  fail: moveSql(
    `state = 'failed', ${over}`,
    oneOf(sourcesOf(fleetWorkerEdges, "failed")),
    true,
    `${workerText} || ' failed: ' || (${because})`,
    "'error'",
  ),
};

/** @returns the claim of a placement, 0 for another change; null where nothing was changed */
export async function applyFleetAction(pool: pg.Pool, action: FleetAction): Promise<number | null> {
  if (action.type === "place") return place(pool, action.workerId, action.host, action.devices);
  const reason: FleetReason = action.reason;
  const claim = action.type === "refuse" ? [action.claim ?? null] : [];
  const { rows } = await pool.query<{ claim: number }>(sql[action.type], [action.workerId, reason, ...claim]);
  return rows[0]?.claim ?? null;
}

async function place(
  pool: pg.Pool,
  workerId: string,
  host: string,
  devices: readonly string[],
): Promise<number | null> {
  try {
    const { rows } = await pool.query<{ claim: number }>(placeSql, [workerId, host, devices, leaseMs]);
    return rows[0]?.claim ?? null;
  } catch (error) {
    // Somebody took one of them in the same moment.
    if (hasCode(error, uniqueViolation)) return null;
    throw error;
  }
}
