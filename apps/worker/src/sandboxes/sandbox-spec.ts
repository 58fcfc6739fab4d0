/** What a rollout's sandbox is to be: its task's wishes, the run's own numbers instead of them, and names to find it by. */
import { createHash } from "node:crypto";
import type { SandboxPurpose } from "@rolldeck/contracts/events";
import type { SandboxSpec, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig, SandboxRuntimeName } from "@rolldeck/contracts/run-config";

/** Without a sign of life from any worker for this long it ends by itself. */
export const sandboxLeaseMs = 180_000;
/** Added to what its stages may take: waiting for slots between them, and being looked into afterwards (see `hot/kept-sandboxes`). */
const moreMs = 30 * 3_600_000;

/** Where it opens: the run's word, else the task's kind decides. */
export const runtimeNameOf = (
  task: Pick<Task, "sandbox">,
  config: Pick<RunConfig, "sandbox">,
  imageRuntime: SandboxRuntimeName,
): SandboxRuntimeName => config.sandbox.runtime ?? (task.sandbox === "process" ? "process" : imageRuntime);

export interface SandboxOwner {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly purpose: SandboxPurpose;
  /** Its run keeps it: it is named after no rollout. */
  readonly isEnvironment: boolean;
}

/** @param id as `sandboxId` makes it */
export function sandboxSpec(
  id: string,
  wanted: TaskSandbox,
  config: Pick<RunConfig, "sandbox" | "dispatcher">,
  owner: SandboxOwner,
): SandboxSpec {
  const { cpus, memoryMb, pids, diskMb } = config.sandbox;
  const own = wanted.resources;
  const { init, run, evaluate } = config.dispatcher.stageTimeoutMs;
  return {
    ...wanted,
    id,
    resources: {
      cpus: cpus ?? own.cpus,
      memoryMb: memoryMb ?? own.memoryMb,
      pids: pids ?? own.pids,
      diskMb: diskMb ?? own.diskMb,
    },
    labels: {
      run: owner.runId,
      ...(owner.isEnvironment ? { environment: id } : { rollout: owner.rolloutId, attempt: String(owner.attempt) }),
      purpose: owner.purpose,
    },
    mounts: [],
    leaseMs: sandboxLeaseMs,
    maxLifeMs: init + run + evaluate + moreMs,
  };
}

/** Equal for what is opened alike, names aside. */
export function fingerprintOf(runtime: string, spec: SandboxSpec): string {
  const { id: _id, labels: _labels, ...rest } = spec;
  return createHash("sha256")
    .update(JSON.stringify([runtime, sorted(rest)]))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

/** For people: an image's name, or what it is built from. */
export function imageText({ image }: TaskSandbox): string | null {
  if (image === null) return null;
  return image.kind === "name" ? image.name : `built from ${image.dockerfile}`;
}

export function networkText({ network, services }: TaskSandbox): string {
  const beside = services.length === 0 ? "" : `, with ${services.map(({ name }) => name).join(", ")}`;
  const hosts = network.mode === "allow-list" ? `: ${network.hosts.join(", ")}` : "";
  return `${network.mode}${hosts}${beside}`;
}
