/** Hosts of the fleet: registered by people, written by the supervisor that looks at them. */
import { ConflictError, InputError, NotFoundError } from "@rolldeck/contracts/errors";
import { type FleetHostSpec, type FleetReason, placedFleetWorkerStates } from "@rolldeck/contracts/fleet";
import type { HostFacts } from "@rolldeck/contracts/ports/fleet";
import type pg from "pg";

/** A host that is silent for so long is lost, ms: a daemon that is started again is back sooner. */
const lostAfterMs = 15_000;

/** @throws InputError when the name is taken */
export async function addFleetHost(pool: pg.Pool, spec: FleetHostSpec): Promise<void> {
  const { rowCount } = await pool.query(
    "insert into fleet_hosts (name, spec) values ($1, $2) on conflict (name) do nothing",
    [spec.name, spec],
  );
  if (rowCount === 1) return;
  const fix = "choose another name, or remove that host first";
  throw new InputError([{ path: "name", message: `there is a host ${spec.name} already`, fix }]);
}

/** @throws NotFoundError */
export async function drainFleetHost(pool: pg.Pool, name: string, draining: boolean): Promise<void> {
  const { rowCount } = await pool.query("update fleet_hosts set draining = $2 where name = $1", [name, draining]);
  if (rowCount === 0) throw new NotFoundError("host", name);
}

/** @throws NotFoundError, ConflictError while a worker is there */
export async function removeFleetHost(pool: pg.Pool, name: string): Promise<void> {
  const { rows } = await pool.query<{ removed: boolean; known: boolean }>(
    `with removed as (
       delete from fleet_hosts h where h.name = $1
         and not exists (select from fleet_workers w where w.host = h.name and w.state = any($2))
         and not exists (select from gpu_leases l join fleet_devices d on d.id = l.device_id where d.host = h.name)
       returning 1)
     select exists (select from removed) as removed, exists (select from fleet_hosts where name = $1) as known`,
    [name, placedFleetWorkerStates],
  );
  if (rows[0]?.removed) return;
  if (!rows[0]?.known) throw new NotFoundError("host", name);
  throw new ConflictError(`host ${name} has workers: drain it and wait until they are over, or stop their runs`);
}

export async function fleetHostSeen(pool: pg.Pool, name: string): Promise<void> {
  await pool.query("update fleet_hosts set last_seen_at = now() where name = $1", [name]);
}

export async function fleetHostAway(pool: pg.Pool, name: string, reason: FleetReason): Promise<void> {
  await pool.query(
    `update fleet_hosts set trouble = $2,
       state = case when state = 'ready' and last_seen_at < now() - $3::int * interval '1 millisecond' then 'lost' else state end
     where name = $1`,
    [name, reason, lostAfterMs],
  );
}

const factsSql = `
with host as (
  update fleet_hosts h set state = 'ready', facts = $2, facts_at = now(), last_seen_at = now(),
    trouble = case when $2::jsonb ->> 'probeTrouble' is null then null else
      jsonb_build_object('code', 'no-gpu-runtime', 'message', $2::jsonb ->> 'probeTrouble', 'remedy', null) end
  where h.name = $1 returning h.name, h.spec
),
reported as materialized (
  select gpu ->> 'uuid' as id, h.name as host, 'gpu' as kind, gpu ->> 'model' as model,
    (gpu ->> 'memoryMb')::int as memory_mb, (gpu ->> 'index')::int as place
  from host h, jsonb_array_elements($2::jsonb -> 'gpus') as gpu
  union all
  select 'cpu-' || h.name || '-' || n, h.name, 'cpu', 'place without a GPU', (h.spec ->> 'cpuMemoryMb')::int, n
  from host h, generate_series(1, (h.spec ->> 'cpuPlaces')::int) as n
),
-- A GPU that another host reports stays that one's: they are two ways to one machine.
written as (
  insert into fleet_devices as d (id, host, kind, model, memory_mb, place)
  select id, host, kind, model, memory_mb, place from reported
  on conflict (id) do update set model = excluded.model, memory_mb = excluded.memory_mb, place = excluded.place, present = true
    where d.host = excluded.host
  returning id
),
absent as (
  update fleet_devices d set present = false from host h
  where d.host = h.name and d.present and not exists (select from reported r where r.id = d.id)
)
select coalesce(array_agg(r.id) filter (where w.id is null), '{}') as elsewhere
from reported r left join written w on w.id = r.id`;

/** Takes the host as it is now, with its devices. A GPU that another host has already is told in its trouble. */
export async function fleetHostFacts(pool: pg.Pool, name: string, facts: HostFacts): Promise<void> {
  const { rows } = await pool.query<{ elsewhere: string[] }>(factsSql, [name, facts]);
  const elsewhere = rows[0]?.elsewhere ?? [];
  if (elsewhere.length === 0) return;
  const reason: FleetReason = {
    code: "launch-failed",
    message: `another host reports the same GPUs: ${elsewhere.slice(0, 8).join(", ")}`,
    remedy: "register each machine once",
  };
  await pool.query("update fleet_hosts set trouble = $2 where name = $1", [name, reason]);
}
