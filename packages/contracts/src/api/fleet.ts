/** The fleet over the API: its hosts with their devices, the GPU workers of runs, their logs. Hosts are the owner's to change. */
import { z } from "zod";
import { deviceKinds, FleetReason, fleetWorkerStates, hostStates, workerRoles } from "../fleet.ts";

export const FleetHostInfo = z.object({
  name: z.string(),
  /** Where its daemon is, for people. */
  endpoint: z.string(),
  address: z.string(),
  image: z.string(),
  state: z.enum(hostStates),
  /** Why it does not answer, or shows no GPU. */
  trouble: FleetReason.nullable(),
  daemon: z.string().nullable(),
  system: z.string().nullable(),
  cpus: z.int().nullable(),
  memoryMb: z.int().nullable(),
  gpuRuntime: z.enum(["nvidia", "cdi"]).nullable(),
  devices: z.array(
    z.object({
      deviceId: z.string(),
      kind: z.enum(deviceKinds),
      model: z.string(),
      memoryMb: z.int(),
      /** The host reported it when it was asked last. */
      present: z.boolean(),
      /** Who has it. */
      workerId: z.string().nullable(),
      runId: z.string().nullable(),
    }),
  ),
  lastSeenAt: z.string().nullable(),
});
export type FleetHostInfo = z.infer<typeof FleetHostInfo>;

export const FleetWorkerInfo = z.object({
  workerId: z.string(),
  runId: z.string(),
  runName: z.string(),
  role: z.enum(workerRoles),
  replica: z.int(),
  device: z.enum(deviceKinds),
  devices: z.int(),
  state: z.enum(fleetWorkerStates),
  /** Its run, or who reads its run's files, still needs it. */
  wanted: z.boolean(),
  reason: FleetReason.nullable(),
  /** Where it is, or was last. */
  host: z.string().nullable(),
  deviceIds: z.array(z.string()),
  bootId: z.string().nullable(),
  restarts: z.int(),
  queuedAt: z.string(),
  placedAt: z.string().nullable(),
  readyAt: z.string().nullable(),
  endedAt: z.string().nullable(),
});
export type FleetWorkerInfo = z.infer<typeof FleetWorkerInfo>;

export const Fleet = z.object({
  hosts: z.array(FleetHostInfo),
  /** Those that are not over, in their order in line; then the newest of those that are, 50 at most. */
  workers: z.array(FleetWorkerInfo),
});
export type Fleet = z.infer<typeof Fleet>;

export const RunGpuWorkers = z.object({
  runId: z.string(),
  /** The one that updates first, then samplers by number, then the reader. */
  workers: z.array(FleetWorkerInfo),
});
export type RunGpuWorkers = z.infer<typeof RunGpuWorkers>;

const HostName = z.string().max(40);
export const DrainFleetHost = z.strictObject({
  name: HostName,
  /** False lets it take workers again. */
  draining: z.boolean().default(true),
});
export const FleetHostRef = z.strictObject({ name: HostName });

export const ReadFleetLog = z.strictObject({
  workerId: z.string().regex(/^[0-9a-z]{26}$/, "must be a worker's id"),
  /** From the end. */
  lines: z.int().min(1).max(2_000).default(200),
});
export const FleetLog = z.object({
  workerId: z.string(),
  /** Each with its time; empty while it has said nothing. */
  lines: z.array(z.string()),
  /** There is more before these. */
  more: z.boolean(),
});
