/**
 * What launches GPU workers on a host: Docker now, others behind the same port. A launcher keeps nothing in memory that matters:
 * what runs on a host is read from the host, by labels, so that whoever supervises the fleet next takes it over.
 */
import { z } from "zod";
import type { DeviceKind, WorkerRole } from "../fleet.ts";

export const GpuFact = z.object({
  uuid: z.string(),
  index: z.int(),
  model: z.string(),
  /** 0 where the GPU has no memory of its own. */
  memoryMb: z.int(),
});
export type GpuFact = z.infer<typeof GpuFact>;

/** What a host's daemon says of itself, and what a short container saw of its GPUs. */
export const HostFacts = z.object({
  daemon: z.string(),
  system: z.string(),
  cpus: z.int(),
  memoryMb: z.int(),
  /** How containers are given GPUs there; null: not at all. */
  gpuRuntime: z.enum(["nvidia", "cdi"]).nullable(),
  runtimes: z.array(z.string()),
  cdiDevices: z.array(z.string()),
  gpus: z.array(GpuFact),
  /** Why a host that can give GPUs shows none; null where it shows them, or can't give any. */
  probeTrouble: z.string().nullable(),
});
export type HostFacts = z.infer<typeof HostFacts>;

export interface LaunchSpec {
  readonly workerId: string;
  /** Fencing number of this placement: a container of an older one is nobody's. */
  readonly claim: number;
  readonly runId: string;
  readonly role: WorkerRole;
  readonly device: DeviceKind;
  /** Those it holds the leases of. */
  readonly devices: readonly string[];
  /** Bound of its memory; null = the machine's. */
  readonly memoryMb: number | null;
  readonly image: string;
  /** Secret of this run between control plane and worker; starts with `tml-`. */
  readonly key: string;
  /** Loopback or private address of the host at which the worker is published. */
  readonly address: string;
  /** Folder of the host for checkpoints; null = a volume of the run. */
  readonly checkpointFolder: string | null;
  /** Runs whose files on the host it may read besides its own, and not change. */
  readonly reads: readonly string[];
  /** Folder of the host with model folders, read-only; null = those of the image. */
  readonly modelFolder: string | null;
}

/** A container of the fleet on a host, whoever's it is. */
export interface SeenWorker {
  readonly containerId: string;
  readonly workerId: string;
  readonly claim: number;
  readonly devices: readonly string[];
  readonly state: "created" | "running" | "ended";
  /** Where it listens; null while it does not run. */
  readonly url: string | null;
  readonly exitCode: number | null;
  readonly outOfMemory: boolean;
}

export interface LogOptions {
  /** Lines from the end to begin with. */
  readonly tail: number;
  readonly follow: boolean;
}

export interface WorkerLauncher {
  /** @throws LaunchFailure `unavailable` when the host does not answer */
  facts(signal: AbortSignal): Promise<HostFacts>;
  /** Everything of this fleet on the host. @throws LaunchFailure */
  seen(signal: AbortSignal): Promise<SeenWorker[]>;
  /** Starts it. Nothing of it is left on the host when that fails. @throws LaunchFailure with a reason for people */
  launch(spec: LaunchSpec, signal: AbortSignal): Promise<{ readonly containerId: string; readonly url: string }>;
  /** Asks it to end, waits, kills it, removes it. Idempotent. @throws LaunchFailure */
  remove(containerId: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Removes what the run saved on this host. Idempotent. @throws LaunchFailure */
  forgetRun(runId: string, signal: AbortSignal): Promise<void>;
  /** Lines as they come; ends with the container, or with the signal. @throws LaunchFailure */
  logs(containerId: string, options: LogOptions, signal: AbortSignal): AsyncIterable<string>;
}
