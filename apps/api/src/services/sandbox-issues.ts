/** What a config asks of sandboxes that this server does not have, or that its tasks can't work in. Pure but for the look at a socket. */
import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig, SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import type { SandboxSettings } from "@rolldeck/sandbox/settings";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;

export interface SandboxFacts {
  /** Kinds that this server's settings say enough of. */
  readonly configured: readonly SandboxRuntimeName[];
  /** Of tasks with an image, where a config names none. */
  readonly imageRuntime: SandboxRuntimeName;
  readonly dockerSocket: string;
  /** Is there such a file on this machine? */
  readonly isThere: (path: string) => boolean;
}

export function sandboxFacts(settings: SandboxSettings, isThere: (path: string) => boolean): SandboxFacts {
  const { remote, kubernetes, imageRuntime, docker } = settings;
  const more: SandboxRuntimeName[] = [
    ...(remote ? ["remote" as const] : []),
    ...(kubernetes ? ["kubernetes" as const] : []),
  ];
  return { configured: ["docker", "process", ...more], imageRuntime, dockerSocket: docker.socket, isThere };
}

type TaskFacts = Pick<Task, "name" | "sandbox">;
type SandboxConfig = Pick<RunConfig, "sandbox">;

/** Kinds that are made of an image, and nothing else. */
const needsImage: readonly SandboxRuntimeName[] = ["docker", "kubernetes"];
const settingOf: Partial<Record<SandboxRuntimeName, string>> = {
  remote: "ROLLDECK_SANDBOX_SERVER and ROLLDECK_SANDBOX_TOKEN",
  kubernetes: "ROLLDECK_KUBECONFIG",
};

/** Null: the task's sandboxes may be opened here, as far as settings tell. */
export function sandboxIssue(
  task: TaskFacts,
  taskSet: number,
  config: SandboxConfig,
  facts: SandboxFacts,
): Issue | null {
  if (task.sandbox === "none") return null;
  const runtime = runtimeOf(task, config, facts);
  const asked = config.sandbox.runtime !== null;
  const path = asked ? "sandbox.runtime" : `taskSets[${taskSet}].name`;
  const fitting = facts.configured.filter((name) => fits(task, name));
  const choose = `use ${fitting.join(" or ")}${asked ? ", or null" : " as sandbox.runtime"}`;
  if (!fits(task, runtime)) {
    const why =
      task.sandbox === "image"
        ? `${task.name} needs an image, and ${runtime} sandboxes have none`
        : `${task.name} names no image, and ${runtime} sandboxes are made of one`;
    return { path, message: why, fix: choose };
  }
  if (facts.configured.includes(runtime)) return null;
  const message = `${task.name} needs a sandbox, and this server has no ${runtime} sandboxes: they are not configured`;
  return { path, message, fix: `set ${settingOf[runtime]} for the server and its workers; or ${choose}` };
}

/** Workers may run on another machine: what is missing on this one is no refusal. */
export function sandboxWarning(task: TaskFacts, config: SandboxConfig, facts: SandboxFacts): Issue | null {
  if (task.sandbox === "none" || runtimeOf(task, config, facts) !== "docker") return null;
  if (facts.isThere(facts.dockerSocket)) return null;
  return {
    path: "sandbox.runtime",
    message: `${task.name} opens Docker sandboxes, and there is no ${facts.dockerSocket} on this machine`,
    fix: "start Docker, or name its socket in ROLLDECK_DOCKER_SOCKET, where the workers run",
  };
}

const runtimeOf = (task: TaskFacts, { sandbox }: SandboxConfig, { imageRuntime }: SandboxFacts): SandboxRuntimeName =>
  sandbox.runtime ?? (task.sandbox === "process" ? "process" : imageRuntime);

const fits = ({ sandbox }: TaskFacts, runtime: SandboxRuntimeName): boolean =>
  sandbox === "image" ? runtime !== "process" : !needsImage.includes(runtime);
