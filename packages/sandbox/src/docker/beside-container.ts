/** What every container that stands beside a sandbox has in common. */
import type { SandboxService, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import type { EgressSettings } from "../settings.ts";
import { defaultResources, labels } from "./container-options.ts";
import type { DockerImages } from "./images.ts";

export interface BesideScene {
  readonly docker: Docker;
  readonly images: Pick<DockerImages, "ensure">;
  readonly deployment: string;
  /** Who makes it, as a label. */
  readonly owner: string;
  readonly egress: EgressSettings;
}

const megabyte = 1024 * 1024;

export const besideLabels = ({ deployment, owner }: BesideScene, { id }: SandboxSpec): Record<string, string> => ({
  [labels.deployment]: deployment,
  [labels.owner]: owner,
  [labels.sandbox]: id,
  [labels.role]: "beside",
});

export interface Place {
  readonly network: string;
  readonly address: string;
  readonly hosts: readonly string[];
}

export const joined = ({ network, address }: Place): Docker.ContainerCreateOptions["NetworkingConfig"] => ({
  EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: address } } },
});

/** Limits of what stands beside; capabilities are those that common services begin with and then drop themselves. */
export function besideHost(resources: SandboxService["resources"], place: Place): Docker.HostConfig {
  const memory = (resources.memoryMb ?? 1_024) * megabyte;
  return {
    AutoRemove: true,
    Privileged: false,
    CapDrop: ["ALL"],
    CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID", "KILL"],
    SecurityOpt: ["no-new-privileges"],
    Memory: memory,
    MemorySwap: memory,
    PidsLimit: resources.pids ?? defaultResources.pids,
    CpuPeriod: 100_000,
    CpuQuota: Math.max(1_000, Math.round((resources.cpus ?? 1) * 100_000)),
    NetworkMode: place.network,
    ExtraHosts: [...place.hosts],
    Dns: ["127.0.0.1"],
    LogConfig: { Type: "none", Config: {} },
  };
}
