/** The fleet as people see it. */
import { type Fleet, FleetHostInfo, FleetWorkerInfo, type RunGpuWorkers } from "@rolldeck/contracts/api/fleet";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { endedFleetWorkerStates, FleetHostSpec } from "@rolldeck/contracts/fleet";
import { endpointText } from "@rolldeck/contracts/host-endpoint";
import { HostFacts } from "@rolldeck/contracts/ports/fleet";
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

const endedShown = 50;

const Host = z.object({
  name: z.string(),
  spec: FleetHostSpec,
  facts: HostFacts.nullable(),
  ...FleetHostInfo.pick({ state: true, trouble: true, devices: true, lastSeenAt: true }).shape,
});

const hostsSql = `
select h.name, h.spec, h.facts, h.trouble, ${iso("h.last_seen_at")} as "lastSeenAt",
  case when h.state = 'ready' and h.draining then 'draining' else h.state end as state,
  (select coalesce(json_agg(json_build_object('deviceId', d.id, 'kind', d.kind, 'model', d.model, 'memoryMb', d.memory_mb,
      'present', d.present, 'workerId', w.id, 'runId', w.run_id) order by d.kind desc, d.place, d.id), '[]')
    from fleet_devices d left join gpu_leases l on l.device_id = d.id left join fleet_workers w on w.id = l.worker_id
    where d.host = h.name) as devices
from fleet_hosts h order by h.name`;

const workersSql = `
select w.id as "workerId", w.run_id as "runId", r.name as "runName", w.role, w.replica, w.device, w.devices, w.state, w.wanted, w.reason,
  w.host, w.boot_id as "bootId", w.restarts, ${iso("w.queued_at")} as "queuedAt", ${iso("w.placed_at")} as "placedAt",
  ${iso("w.ready_at")} as "readyAt", ${iso("w.ended_at")} as "endedAt",
  (select coalesce(json_agg(l.device_id order by l.device_id), '[]') from gpu_leases l where l.worker_id = w.id) as "deviceIds"
from fleet_workers w join runs r on r.id = w.run_id`;

export async function readFleetPage(db: Queryable): Promise<Fleet> {
  const hosts = await readRows(db, Host, hostsSql);
  const open = `${workersSql} where not w.state = any($1) order by w.queued_at, w.id limit 1000`;
  const ended = `${workersSql} where w.state = any($1) order by w.ended_at desc, w.id limit ${endedShown}`;
  const workers = [
    ...(await readRows(db, FleetWorkerInfo, open, [endedFleetWorkerStates])),
    ...(await readRows(db, FleetWorkerInfo, ended, [endedFleetWorkerStates])),
  ];
  return { hosts: hosts.map(hostInfo), workers };
}

/** Of a run that is not on the fleet: none. @throws NotFoundError */
export async function readRunGpuWorkers(db: Queryable, runId: string): Promise<RunGpuWorkers> {
  const run = await readRow(db, z.object({ id: z.string() }), "select id from runs where id = $1", [runId]);
  if (run === null) throw new NotFoundError("run", runId);
  const order = "order by w.role = 'reader', w.role = 'sampler', w.replica";
  return { runId, workers: await readRows(db, FleetWorkerInfo, `${workersSql} where w.run_id = $1 ${order}`, [runId]) };
}

function hostInfo({ spec, facts, ...row }: z.infer<typeof Host>): FleetHostInfo {
  return {
    ...row,
    endpoint: endpointText(spec.endpoint),
    address: spec.address,
    image: spec.image,
    daemon: facts?.daemon ?? null,
    system: facts?.system ?? null,
    cpus: facts?.cpus ?? null,
    memoryMb: facts?.memoryMb ?? null,
    gpuRuntime: facts?.gpuRuntime ?? null,
  };
}

/** @throws NotFoundError */
export async function checkFleetWorker(db: Queryable, workerId: string): Promise<void> {
  const found = await readRow(db, z.object({ id: z.string() }), `select id from fleet_workers where id = $1`, [
    workerId,
  ]);
  if (found === null) throw new NotFoundError("GPU worker of the fleet", workerId);
}
