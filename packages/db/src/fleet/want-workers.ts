/** The GPU workers that a run wants of the fleet. */
import { endedFleetWorkerStates, type FleetDemand, type FleetReason, type WorkerRole } from "@rolldeck/contracts/fleet";
import type pg from "pg";
import { newId } from "../new-id.ts";

interface WantedWorker {
  readonly role: WorkerRole;
  readonly replica: number;
  readonly devices: number;
}

/** @example split with 2 replicas: a trainer and samplers 0 and 1 */
export function workersOf(demand: FleetDemand): WantedWorker[] {
  if (demand.layout === "colocated") return [{ role: "colocated", replica: 0, devices: demand.devices }];
  const samplers = Array.from({ length: demand.replicas }, (_, replica) => ({
    ...{ role: "sampler" as const, replica, devices: demand.replicaDevices },
  }));
  return [{ role: "trainer", replica: 0, devices: demand.devices }, ...samplers];
}

/**
 * Assignments of an upsert that asks for a worker `w` again: one that was over, or is ending, queues again.
 * @param ended SQL text of the states that are over @param again SQL text of `askedAgain`
 */
export const wantedAgain = (ended: string, again: string): string => `wanted = true,
       state = case when w.state = any(${ended}) then 'queued' else w.state end,
       queued_at = case when w.state = any(${ended}) then now() else w.queued_at end,
       failures = case when w.state = any(${ended}) then 0 else w.failures end,
       reason = case when w.state = any(${ended}) then null when w.state = 'stopping' then ${again} else w.reason end,
       ended_at = case when w.state = any(${ended}) then null else w.ended_at end`;

/** Of one that was on its way out when its run asked for it again: it queues once it is gone. */
export const askedAgain: FleetReason = {
  code: "regroups",
  message: "its run asked for it again while it stopped",
  remedy: null,
};

/** Another run's files, with which a run begins: its workers start where they are. */
export interface BeginsWith {
  /** Null: nobody knows, and they start anywhere. */
  readonly filesOn: string | null;
  /** Runs whose files they read. */
  readonly reads: readonly string[];
}
const alone: BeginsWith = { filesOn: null, reads: [] };

/**
 * Asks for them. Those that are there stay; those that were over, or are ending, queue again. Idempotent.
 * @param beginsWith counts when they are asked for first: a run stays where it began
 */
export async function wantWorkers(
  pool: pg.Pool,
  runId: string,
  demand: FleetDemand,
  { filesOn, reads }: BeginsWith = alone,
): Promise<void> {
  const wanted = workersOf(demand);
  await pool.query(
    `insert into fleet_workers as w (id, run_id, role, replica, device, devices, memory_mb, priority, files_on, reads)
     select id, $1, role, replica, $5, devices, $6, $7, $11, $12 from unnest($2::text[], $3::text[], $4::int[], $8::int[]) as n (id, role, replica, devices)
     on conflict (run_id, role, replica) do update set ${wantedAgain("$9", "$10")}`,
    [
      runId,
      wanted.map(() => newId()),
      wanted.map((one) => one.role),
      wanted.map((one) => one.replica),
      demand.device,
      demand.memoryMb,
      demand.priority,
      wanted.map((one) => one.devices),
      endedFleetWorkerStates,
      askedAgain,
      filesOn,
      reads,
    ],
  );
}

/** It needs them no more: they end, and their devices are free. Idempotent. */
export async function unwantWorkers(pool: pg.Pool, runId: string): Promise<void> {
  await pool.query("update fleet_workers set wanted = false where run_id = $1 and role <> 'reader' and wanted", [
    runId,
  ]);
}

/** A run that rests for longer gives its devices to others, and waits for some when it goes on. */
const restLimit = "interval '15 minutes'";
/** A run that is over has its last version saved first; a worker that doesn't get that done is not waited for. */
const saveLimit = "interval '10 minutes'";

/** The same for all runs that are over, or have rested for long. */
export async function unwantIdleRuns(pool: pg.Pool): Promise<void> {
  await pool.query(
    `update fleet_workers w set wanted = false from runs r
     where r.id = w.run_id and w.role <> 'reader' and w.wanted and (
       r.status = 'paused' and r.status_since < now() - ${restLimit}
       or r.status in ('stopped', 'completed', 'failed') and (r.model_boot_id is null or r.ended_at < now() - ${saveLimit}
         or not exists (select from fleet_workers t where t.run_id = r.id and t.role in ('colocated', 'trainer') and t.state = 'ready')))`,
  );
}
