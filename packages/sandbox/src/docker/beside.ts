/**
 * What stands beside a sandbox: a network of its own, its services, and the proxy through which an allow-list's hosts are reached.
 *
 * Invariants: the network leads nowhere (not to the machine either: its bridge has no address); names are lines in hosts files, no
 * server resolves anything; nothing stays when opening fails; everything carries the sandbox's name and goes with it, or with the
 * next sweep where the process that closed the sandbox was killed in between.
 */
import { createHash } from "node:crypto";
import type { SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { pause } from "../shared/waiting.ts";
import { type BesideScene, besideLabels } from "./beside-container.ts";
import { startService } from "./beside-service.ts";
import { containerName, labels } from "./container-options.ts";
import { asked, containerMs, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import { proxyName, proxyVariables, startProxy } from "./egress-proxy.ts";

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

const networkTries = 8;
const pollMs = 200;
const names = /^[a-z0-9]([a-z0-9_.-]{0,40}[a-z0-9])?$/i;

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

/** Sandboxes of which something stands, whether or not they do, and who made it. */
export async function besideOwners(
  docker: Docker,
  deployment: string,
): Promise<ReadonlyMap<string, string | undefined>> {
  const label = [`${labels.deployment}=${deployment}`, `${labels.role}=beside`];
  const what = "listing what stands beside sandboxes";
  const [containers, networks] = await Promise.all([
    asked(what, docker.listContainers({ all: true, filters: { label } })),
    asked(what, docker.listNetworks({ filters: { label } })),
  ]);
  const found = [...containers, ...networks].map(
    ({ Labels }) => [Labels?.[labels.sandbox] ?? "", Labels?.[labels.owner]] as const,
  );
  return new Map(found.filter(([id]) => id !== ""));
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

/** All are waited for, so that none is still coming up when the rest is removed. */
async function allOrFirstTrouble(started: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(started)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}
