/** What the gateway itself does for clients. */
import { begin, call, type Handlers } from "@rolldeck/sandbox/remote/call";
import type { Stream } from "@rolldeck/sandbox/remote/stream";
import { refused, unavailable } from "@rolldeck/sandbox/remote/wire-error";
import { imageKey, type WireImage } from "@rolldeck/sandbox/remote/wire-spec";
import type { Gateway } from "./gateway.ts";
import type { Host } from "./host.ts";
import { hostImage, localImage } from "./host-images.ts";

/** For the client of this name: what it opens is its own. */
export function clientMethods(gateway: Gateway, client: string): Handlers {
  return {
    open: async ({ spec }, stream) => {
      const opened = await gateway.opener.open(gateway.ownedSpec(spec, client), stream.over);
      // Its caller left in the last moment.
      if (stream.over.aborted) await gateway.close(spec.id, client, AbortSignal.timeout(closeLimitMs));
      return opened;
    },
    renew: async ({ sandboxes, leaseMs }, stream) => ({
      sandboxes: await renew(gateway, { client, sandboxes, leaseMs }, stream.over),
    }),
    close: async ({ sandbox }) => {
      await gateway.close(sandbox, client, AbortSignal.timeout(closeLimitMs));
      return {};
    },
    list: async () => gateway.list(client),
    status: async () => gateway.status(),
    prepare: async ({ image }, stream) => {
      await prepare(gateway, image, stream);
      return {};
    },
    hasContext: async ({ hash }) => ({ has: (await gateway.contexts.find(hash)) !== null }),
    putContext: async ({ hash, bytes }, stream) => {
      await gateway.contexts.put(hash, bytes, stream.reader(0));
      return {};
    },
    expect: async ({ recipe, count, forMs }) => {
      gateway.warmPool.expect(client, recipe, count, forMs);
      return {};
    },
    drain: async ({ host, draining }) => {
      await gateway.drain(host, draining);
      return {};
    },
  };
}

const closeLimitMs = 60_000;

/** Renews what can be reached, then says so if some could not: nobody knows of those whether they are there. */
async function renew(
  gateway: Gateway,
  {
    client,
    sandboxes,
    leaseMs,
  }: { readonly client: string; readonly sandboxes: readonly string[]; readonly leaseMs: number },
  signal: AbortSignal,
): Promise<string[]> {
  const byHost = new Map<string, string[]>();
  let unknown = 0;
  for (const id of sandboxes) {
    const held = gateway.ownOf(id, client);
    if (held !== null) byHost.set(held.hostId, [...(byHost.get(held.hostId) ?? []), id]);
    else if (gateway.mayYetShow(id, client)) unknown += 1;
  }
  const asked = await Promise.allSettled(
    [...byHost].map(async ([hostId, ids]) => {
      const { link } = gateway.fleet.linkTo(hostId);
      return (await call(link, "renew", { sandboxes: ids, leaseMs }, signal)).sandboxes;
    }),
  );
  for (const answer of asked) if (answer.status === "rejected") throw answer.reason;
  if (unknown > 0) throw unavailable(`of ${unknown} sandboxes it is not known yet whether they are there`);
  return asked.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}

/** On every host that takes new sandboxes; fails when it can be had on none. */
async function prepare(gateway: Gateway, image: WireImage, stream: Stream): Promise<void> {
  const only = hostImage(image)?.hostId ?? null;
  const hosts = gateway.fleet
    .all()
    .filter((host) => host.link !== null && !host.draining && host.hello.runtime !== "process")
    .filter((host) => only === null || host.hostId === only);
  if (hosts.length === 0) throw unavailable("no host is there to prepare images on");
  const done = await Promise.allSettled(hosts.map((host) => prepareOn(gateway, host, image, stream)));
  const [first] = done;
  if (done.every(({ status }) => status === "rejected")) {
    throw first?.status === "rejected" ? first.reason : refused("no host");
  }
}

async function prepareOn(gateway: Gateway, host: Host, image: WireImage, stream: Stream): Promise<void> {
  const { link } = gateway.fleet.linkTo(host.hostId);
  await gateway.sendContexts(host, { image, services: [] }, stream.over);
  const preparing = begin(link, "prepare", { image: localImage(image) }, stream.over);
  preparing.stream.onNote((body) => {
    if (typeof body === "string") stream.note(`${host.name}: ${body.slice(0, 2000)}`);
  });
  await preparing.result;
  host.sawImage(imageKey(image));
}
