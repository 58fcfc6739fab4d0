/** The fleet as its supervisor and the placement planner see it, read in one moment. */
import {
  deviceKinds,
  endedFleetWorkerStates,
  FleetHostSpec,
  FleetReason,
  fleetWorkerStates,
  type HostSnapshot,
  placedFleetWorkerStates,
  workerRoles,
} from "@rolldeck/contracts/fleet";
import { HostFacts } from "@rolldeck/contracts/ports/fleet";
import type { FleetRows } from "@rolldeck/contracts/ports/fleet-store";
import type pg from "pg";
import { z } from "zod";

const ms = (expression: string): string => `(extract(epoch from ${expression}) * 1000)::float8`;

const Host = z.object({
  name: z.string(),
  spec: FleetHostSpec,
  state: z.enum(["unseen", "ready", "lost"]),
  draining: z.boolean(),
  facts: HostFacts.nullable(),
  factsAgeMs: z.number().nullable(),
  devices: z.array(z.object({ id: z.string(), kind: z.enum(deviceKinds), memoryMb: z.int() })),
});

const Worker = z.object({
  id: z.string(),
  runId: z.string(),
  role: z.enum(workerRoles),
  device: z.enum(deviceKinds),
  devices: z.int(),
  memoryMb: z.int(),
  priority: z.int(),
  wanted: z.boolean(),
  state: z.enum(fleetWorkerStates),
  host: z.string().nullable(),
  filesOn: z.string().nullable(),
  reads: z.array(z.string()),
  reason: FleetReason.nullable(),
  queuedAt: z.number(),
  notBefore: z.number().nullable(),
  failures: z.int(),
  claim: z.int(),
  containerId: z.string().nullable(),
  bootId: z.string().nullable(),
  leasePast: z.boolean(),
  placedForMs: z.number().nullable(),
  held: z.array(z.string()),
});

const Fleet = z.object({ now: z.number(), hosts: z.array(Host), workers: z.array(Worker) });

const sql = `
select ${ms("now()")} as now,
  (select coalesce(json_agg(json_build_object('name', h.name, 'spec', h.spec, 'state', h.state, 'draining', h.draining,
      'facts', h.facts, 'factsAgeMs', ${ms("now() - h.facts_at")},
      'devices', (select coalesce(json_agg(json_build_object('id', d.id, 'kind', d.kind, 'memoryMb', d.memory_mb)), '[]')
        from fleet_devices d where d.host = h.name and d.present)) order by h.name), '[]') from fleet_hosts h) as hosts,
  (select coalesce(json_agg(json_build_object('id', w.id, 'runId', w.run_id, 'role', w.role, 'device', w.device,
      'devices', w.devices, 'memoryMb', w.memory_mb, 'priority', w.priority, 'wanted', w.wanted, 'state', w.state,
      'host', w.host, 'filesOn', w.files_on, 'reads', w.reads, 'reason', w.reason, 'queuedAt', ${ms("w.queued_at")}, 'notBefore', ${ms("w.not_before")},
      'failures', w.failures, 'claim', w.claim, 'containerId', w.container_id, 'bootId', w.boot_id,
      'leasePast', coalesce(w.lease_until < now(), true), 'placedForMs', ${ms("now() - w.placed_at")},
      'held', (select coalesce(json_agg(l.device_id order by l.device_id), '[]') from gpu_leases l where l.worker_id = w.id))
      order by w.id), '[]')
    from fleet_workers w where w.wanted or not w.state = any($1)) as workers`;

export async function readFleet(pool: pg.Pool): Promise<FleetRows> {
  const { rows } = await pool.query(sql, [endedFleetWorkerStates]);
  const { now, hosts, workers } = Fleet.parse(rows[0]);
  const placed = workers.flatMap((worker) => {
    if (!placedFleetWorkerStates.includes(worker.state) || worker.host === null) return [];
    const { host, held, placedForMs, ...rest } = worker;
    return [{ ...rest, host, devices: held, placedForMs: placedForMs ?? 0 }];
  });
  const leases = workers.flatMap(({ id, held }) => held.map((deviceId) => ({ deviceId, workerId: id })));
  const snapshots = hosts.map(
    ({ name, spec, state, draining, facts, devices }): HostSnapshot => ({
      ...{ name, devices },
      state: state === "ready" && draining ? "draining" : state,
      ...(spec.checkpointShare === null ? {} : { share: spec.checkpointShare }),
      gpuRuntime: facts === null ? null : facts.gpuRuntime !== null,
    }),
  );
  return {
    hosts: hosts.map(({ spec, state, draining, factsAgeMs }) => ({ spec, state, draining, factsAgeMs })),
    placed,
    snapshot: { now, hosts: snapshots, workers, leases },
  };
}
