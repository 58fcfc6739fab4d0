/**
 * The fleet of GPU workers: hosts, the devices on them, and the workers that runs want there. What the placement planner reads
 * and what it says. Times are milliseconds of the database's clock, memory is in MB (2^20 bytes).
 */
import { z } from "zod";
import { absolutePath, HostEndpoint, isLoopback, isPrivateAddress } from "./host-endpoint.ts";
import { label } from "./label.ts";

/**
 * `colocated` samples and updates on the same devices; else one `trainer` updates and `sampler`s sample. A `reader` trains nothing: it
 * reads what the run's own workers saved once those are gone, for exports and servings.
 */
export const workerRoles = ["colocated", "trainer", "sampler", "reader"] as const;
export type WorkerRole = (typeof workerRoles)[number];

/** `gpu`: a GPU by its UUID. `cpu`: a place for one worker on a host's processors; the operator says how many a host has. */
export const deviceKinds = ["gpu", "cpu"] as const;
export type DeviceKind = (typeof deviceKinds)[number];

/** `unseen`: registered, no answer yet. `draining`: what is there stays until its run is over, nothing comes. */
export const hostStates = ["unseen", "ready", "draining", "lost"] as const;
export type HostState = (typeof hostStates)[number];

export const fleetWorkerStates = [
  "queued",
  "starting",
  "ready",
  "lost",
  "stopping",
  "stopped",
  "refused",
  "failed",
] as const;
export type FleetWorkerState = (typeof fleetWorkerStates)[number];

/** `starting` begins with the leases of its devices; `lost` and `stopping` keep them until its container is known to be gone. */
export const fleetWorkerEdges: Record<FleetWorkerState, readonly FleetWorkerState[]> = {
  queued: ["starting", "stopped", "refused"],
  starting: ["ready", "lost", "stopping", "queued", "refused"],
  ready: ["lost", "stopping", "queued"],
  lost: ["queued", "stopping", "failed"],
  stopping: ["stopped", "queued"],
  stopped: [],
  refused: [],
  failed: [],
};
export const endedFleetWorkerStates: readonly FleetWorkerState[] = ["stopped", "refused", "failed"];
/** Those that hold leases. */
export const placedFleetWorkerStates: readonly FleetWorkerState[] = ["starting", "ready", "lost", "stopping"];

/** Why a worker is where it is, for people. `remedy` says what would help, null when waiting does. */
export const FleetReason = z.object({
  code: z.enum([
    "no-room",
    "behind",
    "back-off",
    "hosts-away",
    "no-hosts",
    "too-large",
    "apart",
    "files-away",
    "no-gpu-runtime",
    "releasing",
    "host-lost",
    "container-ended",
    "too-many-failures",
    "unavailable",
    "launch-failed",
    "no-image",
    "root-image",
    "out-of-memory",
    "silent",
    "unwanted",
    "yields",
    "regroups",
  ]),
  message: z.string().max(600),
  remedy: z.string().max(600).nullable(),
});
export type FleetReason = z.infer<typeof FleetReason>;

export interface DeviceSnapshot {
  /** UUID of a GPU as its driver says it; of a place on processors, a name that no other host's has. */
  readonly id: string;
  readonly kind: DeviceKind;
  readonly memoryMb: number;
  /** A container that nobody's row stands for is on it: it is not free before that one is removed. */
  readonly occupied?: boolean;
}

export interface HostSnapshot {
  readonly name: string;
  readonly state: HostState;
  /** Containers can be given GPUs there; null while the host has not been asked. */
  readonly gpuRuntime: boolean | null;
  /** Hosts of the same name here read each other's checkpoints; absent: its own are nobody else's. */
  readonly share?: string;
  readonly devices: readonly DeviceSnapshot[];
}

/** A GPU worker that a run wants, or wanted. All of a run's workers but its reader are one group: they start together. */
export interface WorkerSnapshot {
  readonly id: string;
  readonly runId: string;
  readonly role: WorkerRole;
  readonly device: DeviceKind;
  /** How many devices, all of one host. */
  readonly devices: number;
  /** Each device's, at least. */
  readonly memoryMb: number;
  /** Higher goes first. */
  readonly priority: number;
  /** False once its run needs it no more. */
  readonly wanted: boolean;
  readonly state: FleetWorkerState;
  /** Where it is, or was last: what it saved there lets it resume. */
  readonly host: string | null;
  /** Host of the files that it is to read: it starts there, or where that host's files are shared. Absent: anywhere. */
  readonly filesOn?: string | null;
  /** Runs whose files it may read besides its own. */
  readonly reads?: readonly string[];
  readonly reason: FleetReason | null;
  /** When its run asked for it. */
  readonly queuedAt: number;
  /** Not before then: it failed a moment ago. */
  readonly notBefore: number | null;
  /** Times in a row that it ended by itself without having served long. */
  readonly failures: number;
}

/** The fleet's worker of a run, as those see it who use it. */
export const RunWorker = z.object({
  id: z.string(),
  role: z.enum(workerRoles),
  replica: z.int(),
  device: z.enum(deviceKinds),
  state: z.enum(fleetWorkerStates),
  wanted: z.boolean(),
  reason: FleetReason.nullable(),
  host: z.string().nullable(),
  /** Where it listens; null while nothing of it runs. */
  url: z.string().nullable(),
  /** The boot that answered last; null before it has. */
  bootId: z.string().nullable(),
});
export type RunWorker = z.infer<typeof RunWorker>;

export interface FleetSnapshot {
  readonly now: number;
  readonly hosts: readonly HostSnapshot[];
  readonly workers: readonly WorkerSnapshot[];
  readonly leases: readonly { readonly deviceId: string; readonly workerId: string }[];
}

export type FleetAction =
  | { readonly type: "place"; readonly workerId: string; readonly host: string; readonly devices: readonly string[] }
  /** Says why it waits; only when that changed. */
  | { readonly type: "queue"; readonly workerId: string; readonly reason: FleetReason }
  /** Ends its container and gives its leases back; then it is over, or queued again where it is still wanted. */
  | { readonly type: "stop"; readonly workerId: string; readonly reason: FleetReason }
  /** What it was is gone: its leases go back and it queues again. */
  | { readonly type: "restart"; readonly workerId: string; readonly reason: FleetReason }
  /** With the claim of a placement that could not be made; without one, while it is queued. */
  | { readonly type: "refuse"; readonly workerId: string; readonly reason: FleetReason; readonly claim?: number }
  | { readonly type: "fail"; readonly workerId: string; readonly reason: FleetReason };

const FleetHostFields = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lower-case letters, digits and dashes")
    .describe("Its name here"),
  endpoint: HostEndpoint,
  address: z
    .union([z.ipv4(), z.ipv6()])
    .refine(isPrivateAddress, "must be a loopback or private address: workers have no TLS")
    .default("127.0.0.1")
    .describe("Address of the host at which its workers listen and this server reaches them"),
  cpuPlaces: z.int().min(0).max(256).default(0).describe("Workers without a GPU that it may run at once"),
  cpuMemoryMb: z.int().min(256).default(4096).describe("Memory that each of these may use"),
  image: label(300).default("rolldeck-gpu-worker").describe("Image of its workers"),
  modelFolder: absolutePath
    .nullable()
    .default(null)
    .describe("Folder of the host with model folders; null = the image's"),
  checkpointFolder: absolutePath
    .nullable()
    .default(null)
    .describe("Folder of the host for checkpoints; a network mount lets a run resume on another host. null = a volume"),
  checkpointShare: label(60)
    .nullable()
    .default(null)
    .describe(
      "Name of the network mount behind checkpointFolder: hosts that give the same one share a run's files; null = none",
    ),
});
export const FleetHostSpec = FleetHostFields.refine(
  ({ checkpointFolder, checkpointShare }) => checkpointShare === null || checkpointFolder !== null,
  { path: ["checkpointShare"], error: "names what is behind checkpointFolder: give that one too" },
)
  .refine(({ endpoint, checkpointFolder }) => endpoint.kind !== "ray" || checkpointFolder !== null, {
    path: ["checkpointFolder"],
    error: "is needed for a Ray cluster: a folder that all of its nodes share, for a job may come to any of them",
  })
  .refine(({ endpoint, modelFolder }) => endpoint.kind !== "ray" || modelFolder !== null, {
    path: ["modelFolder"],
    error: "is needed for a Ray cluster: the folder of its nodes that has the models, for a job has no image",
  })
  .refine(({ endpoint, address }) => endpoint.kind !== "process" || isLoopback(address), {
    path: ["address"],
    error: "must be loopback for processes of this machine: nobody else has to reach them",
  });
export type FleetHostSpec = z.infer<typeof FleetHostSpec>;

/** Workers of one run. */
export const FleetDemand = z
  .strictObject({
    layout: z
      .enum(["colocated", "split"])
      .default("colocated")
      .describe("colocated: one worker samples and updates; split: one updates, others sample"),
    device: z.enum(deviceKinds).default("gpu").describe("gpu, or cpu: a place on a host's processors"),
    devices: z.int().min(1).max(16).default(1).describe("Devices of the worker that updates, all of one host"),
    replicas: z.int().min(1).max(16).default(1).describe("Layout split: workers that sample"),
    replicaDevices: z.int().min(1).max(16).default(1).describe("Layout split: devices of each that samples"),
    memoryMb: z.int().min(0).max(10_000_000).default(0).describe("Memory of each device at least, MB; 0 = any"),
    priority: z.int().min(0).max(100).default(0).describe("Place in line: one level is worth ten minutes of waiting"),
  })
  .refine((demand) => demand.layout === "split" || (demand.replicas === 1 && demand.replicaDevices === 1), {
    path: ["replicas"],
    error: "belongs to the layout `split`: a colocated worker samples by itself",
  });
export type FleetDemand = z.infer<typeof FleetDemand>;
