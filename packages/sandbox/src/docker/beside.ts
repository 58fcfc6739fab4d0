/**
 * What stands beside a sandbox: a network of its own, its services, and the proxy through which an allow-list's hosts are reached.
 *
 * Invariants: the network leads nowhere (not to the machine either: its bridge has no address); names are lines in hosts files, no
 * server resolves anything; nothing stays when opening fails; everything carries the sandbox's name and goes with it, or with the
 * next sweep where the process that closed the sandbox was killed in between.
 */
import { createHash } from "node:crypto";
import { finished } from "node:stream/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Healthcheck, SandboxService, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { z } from "zod";
import type { EgressSettings } from "../settings.ts";
import { pause } from "../shared/waiting.ts";
import { ExecAnswer } from "./answers.ts";
import { containerName, defaultResources, labels } from "./container-options.ts";
import { asked, containerMs, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import type { DockerImages } from "./images.ts";

export interface BesideScene {
  readonly docker: Docker;
  readonly images: Pick<DockerImages, "ensure">;
  readonly deployment: string;
  readonly egress: EgressSettings;
}

/** How a sandbox's container joins it. */
export interface SandboxNetwork {
  /** Name of its network. */
  readonly mode: string;
  readonly address: string;
  /** `name:address` of everything beside it. */
  readonly hosts: readonly string[];
  /** Tells programs of the proxy. */
  readonly environment: Readonly<Record<string, string>>;
}

const proxyPort = 3128;
const proxyName = "egress";
const networkTries = 8;
const pollMs = 200;
/** Looks, one after the other, at which a service without a check of its own has to run. */
const looksUp = 3;
/** A service without a check of its own is up when it runs. */
const startMs = 60_000;
const names = /^[a-z0-9]([a-z0-9_.-]{0,40}[a-z0-9])?$/i;
const megabyte = 1024 * 1024;

export const needsBeside = ({ services, network }: SandboxSpec): boolean =>
  services.length > 0 || network.mode === "allow-list";

/** @throws BoundaryError("sandbox"), the signal's reason; nothing is left then */
export async function openBeside(scene: BesideScene, spec: SandboxSpec, signal: AbortSignal): Promise<SandboxNetwork> {
  checkNames(spec);
  const { network, services, id } = spec;
  if (network.mode === "allow-list" && scene.egress.image === null) {
    throw refused("a list of allowed hosts needs the egress proxy's image: build it and set ROLLDECK_EGRESS_IMAGE");
  }
  // Pulls and builds take minutes: nothing stands there waiting for them.
  for (const { image } of services) await scene.images.ensure(image, () => undefined, signal);
  try {
    const { name, base } = await makeNetwork(scene, spec);
    const address = (place: number): string => addressText(base + place);
    // .1 would be the bridge's own, .2 is the sandbox's.
    const placed = services.map((service, at) => ({ service, address: address(at + 3) }));
    const proxy = network.mode === "allow-list" ? address(services.length + 3) : null;
    const hosts = [
      `main:${address(2)}`,
      ...placed.map((one) => `${one.service.name}:${one.address}`),
      ...(proxy === null ? [] : [`${proxyName}:${proxy}`]),
    ];
    const place = { network: name, hosts };
    if (proxy !== null) await startProxy(scene, spec, { ...place, address: proxy }, signal);
    const started = placed.map((one) => startService(scene, spec, { ...one, ...place }, signal));
    await allOrFirstTrouble(started);
    signal.throwIfAborted();
    return { mode: name, address: address(2), hosts, environment: proxyVariables(proxy, services) };
  } catch (error) {
    await closeBeside(scene.docker, id).catch(() => undefined);
    throw signal.aborted ? signal.reason : daemonTrouble(error, `opening what stands beside sandbox ${id}`);
  }
}

/** Idempotent. @throws BoundaryError("sandbox", "unavailable") */
export async function closeBeside(docker: Docker, id: string): Promise<void> {
  const label = [`${labels.sandbox}=${id}`, `${labels.role}=beside`];
  const what = `closing what stood beside sandbox ${id}`;
  const containers = await asked(what, docker.listContainers({ all: true, filters: { label } }));
  await Promise.all(containers.map(({ Id }) => gone(what, docker.getContainer(Id).remove({ force: true, v: true }))));
  for (const { Id } of await asked(what, docker.listNetworks({ filters: { label } }))) {
    await gone(what, removeNetwork(docker.getNetwork(Id)));
  }
}

/** Ids of sandboxes of which something stands, whether or not they do. */
export async function besideIds(docker: Docker, deployment: string): Promise<ReadonlySet<string>> {
  const label = [`${labels.deployment}=${deployment}`, `${labels.role}=beside`];
  const what = "listing what stands beside sandboxes";
  const [containers, networks] = await Promise.all([
    asked(what, docker.listContainers({ all: true, filters: { label } })),
    asked(what, docker.listNetworks({ filters: { label } })),
  ]);
  const found = [...containers, ...networks].map(({ Labels }) => Labels?.[labels.sandbox] ?? "");
  return new Set(found.filter((id) => id !== ""));
}

/** 404 and "being removed" mean done. */
async function gone(what: string, removal: Promise<unknown>): Promise<void> {
  try {
    await heard(what, removal, { limitMs: containerMs });
  } catch (error) {
    const status = statusOf(error);
    if (status !== 404 && status !== 409) throw daemonTrouble(error, what);
  }
}

/** A container that is just removing itself holds on to its network for a moment. */
async function removeNetwork(network: Docker.Network): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await heard("removing a sandbox's network", network.remove());
      return;
    } catch (error) {
      if (statusOf(error) !== 403 || tries >= 20) throw error;
    }
    await pause(pollMs);
  }
}

function checkNames({ services }: SandboxSpec): void {
  const seen = new Set(["main", proxyName, "localhost"]);
  for (const { name } of services) {
    if (!names.test(name)) throw refused(`${JSON.stringify(name.slice(0, 60))} can't be the name of a service`);
    if (seen.has(name)) throw refused(`two things beside the sandbox would be called ${name}`);
    seen.add(name);
  }
  if (services.length > 8) throw refused("more than 8 services beside a sandbox");
}

/**
 * Of 16 addresses in 10.231.0.0/16, found by the sandbox's name: Docker's own pools hold some thirty networks, and here each sandbox
 * has one. Where the place is taken the next is tried.
 */
async function makeNetwork(scene: BesideScene, spec: SandboxSpec): Promise<{ name: string; base: number }> {
  const name = `${containerName(spec.id)}-net`;
  const digest = createHash("sha256").update(spec.id).digest();
  for (let attempt = 0; ; attempt++) {
    const place = digest.readUInt16BE(2 * attempt) & 0xfff;
    const base = ((10 << 24) | (231 << 16) | (place << 4)) >>> 0;
    try {
      const options = networkOptions(scene, spec, name, `${addressText(base)}/28`);
      await heard("making a sandbox's network", scene.docker.createNetwork(options));
      return { name, base };
    } catch (error) {
      const taken = /overlap|address pools?|already in use/i.test(error instanceof Error ? error.message : "");
      if (!taken || attempt + 1 >= networkTries) throw daemonTrouble(error, "making a sandbox's network");
    }
  }
}

const networkOptions = (
  scene: BesideScene,
  spec: SandboxSpec,
  name: string,
  subnet: string,
): Docker.NetworkCreateOptions => ({
  Name: name,
  Driver: "bridge",
  Internal: spec.network.mode !== "public",
  IPAM: { Driver: "default", Config: [{ Subnet: subnet }] },
  // An internal network's bridge would answer with the machine's own services.
  Options: spec.network.mode === "public" ? {} : { "com.docker.network.bridge.inhibit_ipv4": "true" },
  Labels: besideLabels(scene, spec),
});

const addressText = (address: number): string => [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join(".");

const besideLabels = ({ deployment }: BesideScene, { id }: SandboxSpec): Record<string, string> => ({
  [labels.deployment]: deployment,
  [labels.sandbox]: id,
  [labels.role]: "beside",
});

interface Place {
  readonly network: string;
  readonly address: string;
  readonly hosts: readonly string[];
}

const joined = ({ network, address }: Place): Docker.ContainerCreateOptions["NetworkingConfig"] => ({
  EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: address } } },
});

/** Limits of what stands beside; capabilities are those that common services begin with and then drop themselves. */
function besideHost(resources: SandboxService["resources"], place: Place): Docker.HostConfig {
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

async function startService(
  scene: BesideScene,
  spec: SandboxSpec,
  { service, ...place }: Place & { readonly service: SandboxService },
  signal: AbortSignal,
): Promise<void> {
  const image = await scene.images.ensure(service.image, () => undefined, signal);
  const container = await asked(
    `making the service ${service.name}`,
    scene.docker.createContainer({
      name: `${containerName(spec.id)}-${service.name}`,
      Image: image.id,
      ...(service.command === null ? {} : { Cmd: [...service.command] }),
      Env: Object.entries(service.environment).map(([name, value]) => `${name}=${value}`),
      Hostname: service.name,
      Labels: besideLabels(scene, spec),
      ...(service.healthcheck === null ? {} : { Healthcheck: dockerCheck(service.healthcheck) }),
      HostConfig: besideHost(service.resources, place),
      NetworkingConfig: joined(place),
    }),
    { limitMs: containerMs },
  );
  await asked(`starting the service ${service.name}`, container.start(), { limitMs: containerMs });
  await untilUp(container, service, signal);
}

const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms)) * 1_000_000;

const dockerCheck = ({
  command,
  intervalMs,
  timeoutMs,
  startMs: start,
  retries,
}: Healthcheck): Docker.HealthConfig => ({
  Test: ["CMD", ...command],
  Interval: nanoseconds(intervalMs),
  Timeout: nanoseconds(timeoutMs),
  StartPeriod: nanoseconds(start),
  Retries: retries,
});

const State = z.object({
  State: z.object({
    Running: z.boolean(),
    ExitCode: z.number().optional(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
});

/** @throws BoundaryError("sandbox", "refused") for one that ends or never gets well: the task's own fault */
async function untilUp(
  container: Docker.Container,
  { name, healthcheck: check }: SandboxService,
  signal: AbortSignal,
): Promise<void> {
  const limitMs = check === null ? startMs : check.startMs + (check.retries + 1) * (check.intervalMs + check.timeoutMs);
  let looks = 0;
  for (const endAt = performance.now() + limitMs; performance.now() < endAt; await pause(pollMs, signal)) {
    signal.throwIfAborted();
    const { State: state } = State.parse(await inspected(container, name));
    if (!state.Running) throw refused(`the service ${name} ended (exit ${state.ExitCode ?? "unknown"})`);
    const health = state.Health?.Status;
    looks += 1;
    // One that ends at once runs for a moment, too.
    const unchecked = health === undefined || health === "none";
    if (health === "healthy" || (unchecked && looks >= looksUp)) return;
    if (health === "unhealthy") break;
  }
  throw refused(`the service ${name} did not get well in time`);
}

/** A service that ended has removed itself. */
async function inspected(container: Docker.Container, name: string): Promise<unknown> {
  try {
    return await heard(`looking at the service ${name}`, container.inspect());
  } catch (error) {
    if (statusOf(error) === 404) throw refused(`the service ${name} ended as soon as it was started`);
    throw error;
  }
}

async function startProxy(scene: BesideScene, spec: SandboxSpec, place: Place, signal: AbortSignal): Promise<void> {
  const { docker, images, egress } = scene;
  if (egress.image === null || spec.network.mode !== "allow-list") return;
  const image = await images.ensure({ kind: "name", name: egress.image }, () => undefined, signal);
  const limits = { cpus: 0.5, memoryMb: 256, pids: 64, diskMb: null };
  const container = await asked(
    "making the egress proxy",
    docker.createContainer({
      name: `${containerName(spec.id)}-${proxyName}`,
      Image: image.id,
      Env: [
        `EGRESS_HOSTS=${spec.network.hosts.join(",")}`,
        `EGRESS_PORT=${proxyPort}`,
        ...(egress.allowPrivate ? ["EGRESS_ALLOW_PRIVATE=1"] : []),
      ],
      Labels: besideLabels(scene, spec),
      HostConfig: {
        ...besideHost(limits, { ...place, network: egress.network }),
        // Names are resolved outside.
        ...{ Dns: undefined, ExtraHosts: undefined, CapAdd: [] },
      },
    }),
    { limitMs: containerMs },
  );
  await asked(
    "joining a sandbox's network",
    docker.getNetwork(place.network).connect({
      Container: container.id,
      EndpointConfig: { IPAMConfig: { IPv4Address: place.address } },
    }),
  );
  await asked("starting the egress proxy", container.start(), { limitMs: containerMs });
  await untilProxyAnswers(container);
}

const knock = `import socket, time
for _ in range(200):
    try: raise SystemExit(socket.create_connection(("127.0.0.1", ${proxyPort}), 1).close())
    except OSError: time.sleep(0.05)
raise SystemExit(1)`;

/** The first command of a sandbox finds it. @throws BoundaryError("sandbox", "unavailable") */
async function untilProxyAnswers(container: Docker.Container): Promise<void> {
  try {
    const what = "knocking at the egress proxy";
    const exec = await asked(what, container.exec({ Cmd: ["python3", "-c", knock], AttachStdout: true }));
    const output = await asked(what, exec.start({ Detach: false }), { late: (stream) => stream.destroy() });
    await asked(what, finished(output.resume()), { limitMs: containerMs });
    const { ExitCode } = ExecAnswer.parse(await asked(what, exec.inspect()));
    if (ExitCode !== 0) throw new Error(`exit ${ExitCode}`);
  } catch (cause) {
    throw new BoundaryError("sandbox", "unavailable", "the egress proxy did not come up", { cause, retryable: true });
  }
}

function proxyVariables(proxy: string | null, services: readonly SandboxService[]): Record<string, string> {
  if (proxy === null) return {};
  const address = `http://${proxy}:${proxyPort}`;
  const direct = ["localhost", "127.0.0.1", "::1", "main", ...services.map(({ name }) => name)].join(",");
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return { ...both("HTTP_PROXY", address), ...both("HTTPS_PROXY", address), ...both("NO_PROXY", direct) };
}

/** All are waited for, so that none is still coming up when the rest is removed. */
async function allOrFirstTrouble(started: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(started)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}
