/** What GPU workers can be launched on, by the kind of a host's endpoint. */
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { HostEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { DockerLauncher } from "./docker/docker-launcher.ts";
import { KubernetesLauncher } from "./kubernetes/kubernetes-launcher.ts";

type Host<Kind> = FleetHostSpec & { readonly endpoint: Extract<HostEndpoint, { kind: Kind }> };
type Launchers = { readonly [Kind in HostEndpoint["kind"]]: (host: Host<Kind>, fleet: string) => WorkerLauncher };

const docker = ({ name, endpoint, image }: Host<"socket" | "tcp" | "ssh">, fleet: string): WorkerLauncher =>
  new DockerLauncher({ name, endpoint, fleet, image });

const launchers: Launchers = {
  socket: docker,
  tcp: docker,
  ssh: docker,
  kubernetes: ({ name, endpoint }, fleet) => new KubernetesLauncher({ name, endpoint, fleet }),
};

/** @param fleet id of this deployment: what its containers are known by */
export function launcherOf<Kind extends HostEndpoint["kind"]>(host: Host<Kind>, fleet: string): WorkerLauncher {
  return launchers[host.endpoint.kind](host, fleet);
}
