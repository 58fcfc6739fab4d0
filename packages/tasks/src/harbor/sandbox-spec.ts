/** A Harbor task as sandboxes: the agent's, and the verifier's own where it has one. Pure but for paths of the task's folder. */
import { join, normalize } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import type { ImageSource, SandboxService, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { ComposeFile, ComposeService } from "./compose-file.ts";
import type { HarborTask } from "./harbor-task.ts";
import { narrow, type TaskNetwork } from "./network.ts";
import { fillInAll, type OperatorVariables } from "./operator-variables.ts";
import type { TaskEnvironment, TaskStep } from "./task-file.ts";

export interface SpecScene {
  readonly variables: OperatorVariables;
  /** The operator's word; it can only narrow. */
  readonly network: TaskNetwork;
}

/** @throws InputError at `dataset` for a task without an image */
export function agentSandbox(task: HarborTask, scene: SpecScene): TaskSandbox {
  const { environment, agent } = task.file;
  const main = task.compose?.main ?? null;
  return {
    image: agentImage(task),
    resources: resourcesOf(environment, main),
    network: narrow(agent.network ?? environment.network, scene.network),
    ...(agent.user === null ? {} : { user: agent.user }),
    workdir: environment.workdir,
    environment: { ...main?.environment, ...fillInAll(environment.variables, scene.variables) },
    services: servicesOf(task, task.compose),
  };
}

/** @throws InputError at `dataset` for a task without an image */
export function verifierSandbox(task: HarborTask, step: TaskStep, scene: SpecScene): TaskSandbox {
  const own = step.verifier.environment;
  const environment = own ?? task.file.environment;
  const user = step.verifier.user;
  return {
    image: verifierImage(task, step, own),
    resources: resourcesOf(environment, null),
    network: narrow(step.verifier.network ?? environment.network, scene.network),
    ...(user === null ? {} : { user }),
    workdir: environment.workdir,
    environment: fillInAll(environment.variables, scene.variables),
    services: [],
  };
}

const resourcesOf = (environment: TaskEnvironment, main: ComposeService | null): TaskSandbox["resources"] => ({
  cpus: environment.cpus ?? main?.cpus ?? null,
  memoryMb: environment.memoryMb ?? main?.memoryMb ?? null,
  pids: null,
  diskMb: environment.diskMb,
});

function agentImage(task: HarborTask): ImageSource {
  const { dockerImage, buildTimeoutMs } = task.file.environment;
  if (dockerImage !== null) return { kind: "name", name: dockerImage };
  const main = task.compose?.main ?? null;
  if (main !== null && (main.build !== null || main.image !== null)) return composeImage(task, main);
  if (task.has.dockerfile) return build(task, "environment", "Dockerfile", buildTimeoutMs);
  throw refusal(`${task.name} says no image: neither environment.docker_image nor environment/Dockerfile`);
}

/** Harbor builds a separate verifier from the folder of its tests; without any word of its own it is like the agent's. */
function verifierImage(task: HarborTask, step: TaskStep, own: TaskEnvironment | null): ImageSource {
  if (own !== null && own.dockerImage !== null) return { kind: "name", name: own.dockerImage };
  const { buildTimeoutMs } = own ?? task.file.environment;
  if (task.has.testsDockerfile) return build(task, "tests", "Dockerfile", buildTimeoutMs);
  if (own === null) return agentImage(task);
  throw refusal(`${task.name}${step.name === null ? "" : `, step ${step.name}`} says no image for its verifier`);
}

const refusal = (message: string): InputError => new InputError([{ path: "dataset", message }]);

const build = (task: HarborTask, context: string, dockerfile: string, timeoutMs: number): ImageSource => ({
  kind: "build",
  context: join(task.folder, context),
  dockerfile,
  timeoutMs,
});

function composeImage(task: HarborTask, service: ComposeService): ImageSource {
  if (service.build === null) {
    if (service.image !== null) return { kind: "name", name: service.image };
    throw refusal(`${task.name}: service ${service.name} has neither image nor build`);
  }
  const context = normalize(service.build.context);
  if (context.startsWith("/") || context.startsWith("..")) {
    throw refusal(`${task.name}: services.${service.name}.build.context leads out of environment/`);
  }
  const dockerfile = normalize(service.build.dockerfile);
  if (dockerfile.startsWith("/") || dockerfile.startsWith("..")) {
    throw refusal(`${task.name}: services.${service.name}.build.dockerfile leads out of its context`);
  }
  return build(task, join("environment", context), dockerfile, task.file.environment.buildTimeoutMs);
}

function servicesOf(task: HarborTask, compose: ComposeFile | null): SandboxService[] {
  return (compose?.services ?? []).map((service) => ({
    name: service.name,
    image: composeImage(task, service),
    command: service.command,
    environment: service.environment,
    resources: { cpus: service.cpus, memoryMb: service.memoryMb, pids: null, diskMb: null },
    healthcheck: service.healthcheck,
  }));
}
