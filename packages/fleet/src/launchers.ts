/** What GPU workers can be launched on, by the kind of a host's endpoint. */
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { HostEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { DockerLauncher } from "./docker/docker-launcher.ts";
import { KubernetesLauncher } from "./kubernetes/kubernetes-launcher.ts";
import { LaunchFailure } from "./launch-failure.ts";
import { type LocalWorkers, ProcessLauncher } from "./process/process-launcher.ts";
import { RayLauncher } from "./ray/ray-launcher.ts";

export interface Deployment {
  /** What its containers, pods, jobs and processes are known by. */
  readonly fleet: string;
  /** Null where this process starts none on its own machine. */
  readonly local: LocalWorkers | null;
}

type Host<Kind> = FleetHostSpec & { readonly endpoint: Extract<HostEndpoint, { kind: Kind }> };
type Launchers = {
  readonly [Kind in HostEndpoint["kind"]]: (host: Host<Kind>, deployment: Deployment) => WorkerLauncher;
};

const docker = ({ name, endpoint, image }: Host<"socket" | "tcp" | "ssh">, { fleet }: Deployment): WorkerLauncher =>
  new DockerLauncher({ name, endpoint, fleet, image });

const launchers: Launchers = {
  socket: docker,
  tcp: docker,
  ssh: docker,
  kubernetes: ({ name, endpoint }, { fleet }) => new KubernetesLauncher({ name, endpoint, fleet }),
  ray: ({ name, endpoint }, { fleet }) => new RayLauncher({ name, endpoint, fleet }),
  process: ({ name }, { fleet, local }) => new ProcessLauncher({ name, fleet, local: needed(local) }),
};

/** @throws LaunchFailure for processes, where this process starts none */
export function launcherOf<Kind extends HostEndpoint["kind"]>(
  host: Host<Kind>,
  deployment: Deployment,
): WorkerLauncher {
  return launchers[host.endpoint.kind](host, deployment);
}

function needed(local: LocalWorkers | null): LocalWorkers {
  if (local !== null) return local;
  const message = "workers as processes are started by `npm start` alone";
  throw new LaunchFailure({
    code: "unavailable",
    message,
    remedy: "remove the host, or let `npm start` supervise the fleet",
  });
}
