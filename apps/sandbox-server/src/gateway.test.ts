/** What a gateway makes of a host that is cut off between a deed and its answer. The host is the test's. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import type { HeldFact } from "@rolldeck/sandbox/remote/methods";
import { Stream } from "@rolldeck/sandbox/remote/stream";
import { clientLabel, recipeOf, type WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import { type LinkPair, linkPair } from "@rolldeck/sandbox/testing/link-pair";
import { afterEach, beforeEach, expect, it } from "vitest";
import { waitUntil } from "../testing/wait-until.ts";
import { Contexts } from "./contexts.ts";
import { Gateway } from "./gateway.ts";
import { KnownHosts } from "./known-hosts.ts";

let folder: string;
let gateway: Gateway;
let links: LinkPair[];
let asked: { readonly method: string; readonly params: unknown; readonly stream: Stream }[];
let held: HeldFact[];
/** It does not say what it has. */
let isSilent: boolean;
let heldAsked = 0;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-gateway-"));
  [links, asked, held, isSilent] = [[], [], [], false];
  gateway = new Gateway({
    ...{ contexts: new Contexts(folder, 1e6), knownHosts: await KnownHosts.load(path.join(folder, "hosts"), true) },
    ...{ startsPerSecond: 100, startsPerSecondOfHost: 100, maxQueued: 10, maxReady: 1, lostAfterMs: 30_000 },
    ...{ draining: new Set<string>(), saveDraining: async () => undefined, nowMs: () => performance.now() },
    onTrouble: () => undefined,
  });
});
afterEach(async () => {
  for (const each of links) each.close();
  await rm(folder, { recursive: true, force: true });
});

/** The host comes, or comes again; what it is asked for, but for what it has, waits for the test. */
async function dial(): Promise<LinkPair> {
  const made = await linkPair(
    ({ s, method, params }, link) => {
      const stream = new Stream(link, s);
      if (method === "held") heldAsked += 1;
      if (method === "held" && !isSilent) stream.finish({ sandboxes: held });
      else if (method !== "held") asked.push({ method, params, stream });
      return stream;
    },
    (side) => {
      if (side === "caller") gateway.fleet.left(host, made.caller);
    },
  );
  links.push(made);
  const host = gateway.fleet.join(
    {
      ...({ k: "host-hello", version: 1, hostId: "host0000", name: "host", bootId: "b", runtime: "process" } as const),
      ...{ isolation: "", limits: [], maxSandboxes: 9, memoryMb: 999, labels: {}, images: [] },
    },
    made.caller,
  );
  await gateway.settle(host);
  return made;
}

async function askedFor(method: string) {
  await waitUntil(() => asked.some((each) => each.method === method));
  const at = asked.findIndex((each) => each.method === method);
  return asked.splice(at, 1)[0] ?? expect.unreachable();
}

const id = `sbx_${"a".repeat(20)}`;
const spec: WireSpec = {
  ...{ id, labels: { [clientLabel]: "me" }, image: null, workdir: null, environment: {}, resources: noResources },
  ...{ network: { mode: "none" }, services: [], leaseMs: 60_000, maxLifeMs: 600_000 },
};

it("one that was taken for an opening that then failed is closed when its host is back, not handed to its name", async () => {
  const first = await dial();
  gateway.warmPool.expect("me", recipeOf(spec), 1, 60_000);
  (await askedFor("open")).stream.finish({ workdir: "/", can: [] });
  await waitUntil(() => [...gateway.directory.all()].some(({ phase }) => phase === "warm"));
  const stop = new AbortController();
  const opening = expect(gateway.opener.open(spec, stop.signal)).rejects.toThrow("given up");
  await askedFor("take");
  // The host has done it; nobody hears of that.
  first.close();
  await waitUntil(() => gateway.places.queued === 1);
  stop.abort(new Error("given up"));
  await opening;
  const { labels } = spec;
  held = [{ id, labels, state: "running", createdAtMs: 0, warm: false, image: "none", cpus: null, memoryMb: null }];
  await dial();
  expect((await askedFor("close")).params).toEqual({ sandbox: id });
  expect(gateway.list("me")).toEqual({ sandboxes: [], complete: true });
});

it("a host that dials again while it is asked what it has is asked on its new connection at once", async () => {
  await dial();
  const [host] = gateway.fleet.all();
  if (host === undefined) return expect.unreachable();
  isSilent = true;
  heldAsked = 0;
  const settling = gateway.settle(host);
  await waitUntil(() => heldAsked === 1);
  isSilent = false;
  const again = await dial();
  await settling;
  expect([host.state, host.link === again.caller]).toEqual(["here", true]);
});

it("a second process that says it is the same host is refused while the first one answers, and let in when it does not", async () => {
  const { caller } = await dial();
  const [host] = gateway.fleet.all();
  if (host === undefined) return expect.unreachable();
  await gateway.fleet.makeWay(host.hello);
  await expect(gateway.fleet.makeWay({ ...host.hello, bootId: "other" })).rejects.toThrow(/is here already/);
  expect([host.state, host.link === caller]).toEqual(["here", true]);
  // Stopped, or cut off without a word: its connection looks open, and nobody answers.
  const raw = links[0]?.raw ?? expect.unreachable();
  raw.ping = () => undefined;
  await gateway.fleet.makeWay({ ...host.hello, bootId: "other" });
  expect([host.state, host.link]).toEqual(["away", null]);
});
