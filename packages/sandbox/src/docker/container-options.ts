/**
 * What a container is made with. Invariants: no capability, no way to gain one, the default seccomp filter, limits on memory (and
 * no swap beyond), processes, CPU and file size always; nothing of the machine but the mounts that the operator named; it removes
 * itself when its keeper ends.
 *
 * The image's user is kept where it is not root. Root is kept, too: images of repositories are made and tested as root, and their
 * files belong to it. Without any capability it is a user like others, who happens to own the image's files.
 */
import type { SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { refused } from "./daemon-trouble.ts";
import { keeperCommand, keeperProcesses, keeperUid, keeperUser } from "./lease-keeper.ts";

export const defaultResources = { cpus: 2, memoryMb: 4_096, pids: 512, diskMb: 10_240 };

/** What `networkPart` decided, as far as the container is told of it. */
export interface NetworkChoice {
  readonly disabled: boolean;
  readonly mode?: string;
  readonly beside?: {
    readonly mode: string;
    readonly address: string;
    readonly hosts: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
  };
}

export interface ImageFacts {
  readonly id: string;
  /** Empty = root. */
  readonly user: string;
  readonly workdir: string;
}

/** Everything of ours carries these; `role` tells the sandbox from what stands beside it. */
export const labels = {
  deployment: "rolldeck.deployment",
  sandbox: "rolldeck.sandbox",
  role: "rolldeck.role",
  user: "rolldeck.sandbox.user",
  workdir: "rolldeck.sandbox.workdir",
  pids: "rolldeck.sandbox.pids",
  owner: "rolldeck.owner",
} as const;
const own = new Set<string>(Object.values(labels));
const prefix = "rolldeck.";

export const containerName = (id: string): string => `rolldeck-${id}`;

/** The spec's own labels, from a container's. */
export function specLabels(all: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(all).filter(([name]) => name.startsWith(prefix) && !own.has(name));
  return Object.fromEntries(entries.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** The keeper's are not the sandbox's. */
const pidsLimit = (spec: SandboxSpec): number => (spec.resources.pids ?? defaultResources.pids) + keeperProcesses;

const mega = 1024 * 1024;

export const sandboxUser = (spec: SandboxSpec, image: ImageFacts): string => spec.user ?? (image.user || "0:0");
export const sandboxWorkdir = (spec: SandboxSpec, image: ImageFacts): string => spec.workdir ?? (image.workdir || "/");

/** @throws BoundaryError("sandbox", "refused") for what Docker can't be told */
export function containerOptions(
  spec: SandboxSpec,
  image: ImageFacts,
  scene: {
    readonly deployment: string;
    readonly owner: string;
    readonly network: NetworkChoice;
    readonly diskQuota: boolean;
  },
): Docker.ContainerCreateOptions {
  const { network } = scene;
  const workdir = sandboxWorkdir(spec, image);
  const user = sandboxUser(spec, image);
  // It could tell its own keeper to stay.
  if (user.split(":").some((part) => part === keeperUid)) throw refused(`the user ${user} is that of the keeper`);
  if (!workdir.startsWith("/")) throw refused(`the working folder ${workdir} is no absolute path`);
  return {
    name: containerName(spec.id),
    Image: image.id,
    Entrypoint: keeperCommand(spec.leaseMs, spec.maxLifeMs),
    Cmd: [],
    User: keeperUser,
    WorkingDir: workdir,
    Env: Object.entries({ ...network.beside?.environment, ...spec.environment }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    // The name resolves whatever the image knows of names.
    Hostname: network.beside ? "main" : "localhost",
    // Input is how the keeper hears of a new lease.
    OpenStdin: true,
    StdinOnce: false,
    // A daemon that stops waits for nothing: the keeper heeds no other signal.
    StopSignal: "SIGKILL",
    NetworkDisabled: network.disabled,
    Labels: {
      ...Object.fromEntries(Object.entries(spec.labels).map(([name, value]) => [`${prefix}${name}`, value])),
      [labels.deployment]: scene.deployment,
      [labels.owner]: scene.owner,
      [labels.sandbox]: spec.id,
      [labels.role]: "sandbox",
      [labels.user]: user,
      [labels.workdir]: workdir,
      [labels.pids]: String(pidsLimit(spec)),
    },
    HostConfig: hostConfig(spec, scene),
    ...(network.beside && {
      NetworkingConfig: {
        EndpointsConfig: { [network.beside.mode]: { IPAMConfig: { IPv4Address: network.beside.address } } },
      },
    }),
  };
}

function hostConfig(
  spec: SandboxSpec,
  scene: { readonly network: NetworkChoice; readonly diskQuota: boolean },
): Docker.HostConfig {
  const { resources } = spec;
  const memory = (resources.memoryMb ?? defaultResources.memoryMb) * mega;
  const disk = (resources.diskMb ?? defaultResources.diskMb) * mega;
  return {
    AutoRemove: true,
    Init: false,
    Privileged: false,
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges"],
    Memory: memory,
    MemorySwap: memory,
    PidsLimit: pidsLimit(spec),
    // Not NanoCpus: that is refused where the machine has fewer cores.
    CpuPeriod: 100_000,
    CpuQuota: Math.max(1_000, Math.round((resources.cpus ?? defaultResources.cpus) * 100_000)),
    Ulimits: [
      { Name: "core", Soft: 0, Hard: 0 },
      { Name: "fsize", Soft: disk, Hard: disk },
    ],
    ...(scene.diskQuota ? { StorageOpt: { size: String(disk) } } : {}),
    // In memory, and counted there; half of it at most, so that a full one leaves room to work.
    Tmpfs: { "/tmp": `rw,exec,nosuid,nodev,mode=1777,size=${Math.floor(memory / 2)}` },
    IpcMode: "private",
    LogConfig: { Type: "none", Config: {} },
    ...(scene.network.mode === undefined ? {} : { NetworkMode: scene.network.mode }),
    // Names are lines in a file: nothing of the sandbox's is asked of a name server.
    ...(scene.network.beside && {
      ExtraHosts: [...scene.network.beside.hosts],
      ...(spec.network.mode === "public" ? {} : { Dns: ["127.0.0.1"] }),
    }),
    Mounts: spec.mounts.map((mount) => ({
      Type: "bind" as const,
      Source: mount.source,
      Target: mount.target,
      ReadOnly: mount.readOnly,
    })),
  };
}
