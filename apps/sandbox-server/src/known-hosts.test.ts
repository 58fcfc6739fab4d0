/** Which hosts a server that starts waits for, by what the one before it wrote down. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Stream } from "@rolldeck/sandbox/remote/stream";
import { type LinkPair, linkPair } from "@rolldeck/sandbox/testing/link-pair";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../testing/wait-until.ts";
import { Directory } from "./directory.ts";
import { Fleet } from "./fleet.ts";
import { KnownHosts } from "./known-hosts.ts";
import { UsageMeter } from "./usage.ts";

let folder: string;
let file: string;
let links: LinkPair;
let nowMs: number;
/** What the host does when it is asked what it has. */
let onHeld: (stream: Stream) => void;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-hosts-"));
  file = path.join(folder, "hosts.json");
  nowMs = 0;
  onHeld = (stream) => stream.finish({ sandboxes: [] });
  links = await linkPair(({ s }, link) => {
    const stream = new Stream(link, s);
    onHeld(stream);
    return stream;
  });
});
afterEach(async () => {
  links.close();
  await rm(folder, { recursive: true, force: true });
});

const [one, other] = ["host0000one", "host00other"];
const written = async () => JSON.parse(await readFile(file, "utf8"));

async function start(isFirst = false): Promise<Fleet> {
  return new Fleet({
    ...{ directory: new Directory(new UsageMeter()), known: await KnownHosts.load(file, isFirst) },
    ...{ startsPerSecond: 1, lostAfterMs: 30_000, draining: new Set<string>(), nowMs: () => nowMs },
    ...{ isUnderWay: () => false, onRoom: () => undefined },
    onTrouble: (message, error) => {
      throw new Error(message, { cause: error });
    },
  });
}
const join = (fleet: Fleet, hostId: string) =>
  fleet.join(
    {
      ...({ k: "host-hello", version: 1, hostId, name: hostId, bootId: "b", runtime: "process" } as const),
      ...{ isolation: "", limits: [], maxSandboxes: 1, memoryMb: 1, labels: {}, images: [] },
    },
    links.caller,
  );

describe("a server that starts", () => {
  it("knows all when there can be no host, and not when nobody can say", async () => {
    expect((await start(true)).knowsAll()).toBe(true);
    for (const text of [null, "[", '{"a":1}']) {
      if (text !== null) await writeFile(file, text);
      const fleet = await start();
      expect(fleet.knowsAll()).toBe(false);
      nowMs += 30_000;
      expect(fleet.knowsAll()).toBe(true);
    }
  });

  it("waits for those that were known, until each has said what it has", async () => {
    await writeFile(file, JSON.stringify([one, other]));
    const fleet = await start();
    const hosts = [join(fleet, one), join(fleet, other)];
    for (const host of hosts) {
      expect(fleet.knowsAll()).toBe(false);
      await fleet.settle(host);
    }
    expect(fleet.knowsAll()).toBe(true);
  });

  it("waits for one that came and does not say what it has, but not for ever", async () => {
    const fleet = await start(true);
    nowMs = 100_000;
    const host = join(fleet, one);
    onHeld = () => undefined;
    const settling = fleet.settle(host).catch(() => undefined);
    expect(fleet.knowsAll()).toBe(false);
    nowMs += 30_000;
    expect(fleet.knowsAll()).toBe(true);
    links.close();
    await settling;
  });

  it("has written down a host before it gives it anything, and forgets one that stays away", async () => {
    await writeFile(file, JSON.stringify([other]));
    const fleet = await start();
    const host = join(fleet, one);
    expect(host.accepting(nowMs)).toBe(false);
    onHeld = (stream) => {
      void written().then((hosts) => stream.finish({ sandboxes: [], ...(hosts.includes(one) ? {} : { bad: true }) }));
    };
    await fleet.settle(host);
    expect([host.accepting(nowMs), await written()]).toEqual([true, [other, one]]);
    nowMs = 30_000;
    fleet.tick();
    await waitUntil(async () => (await written()).length === 1);
    expect(await written()).toEqual([one]);
    fleet.left(host, links.caller);
    nowMs = 60_000;
    fleet.tick();
    await waitUntil(async () => (await written()).length === 0);
  });

  it("gives nothing to a host that it can't write down", async () => {
    const fleet = await start(true);
    await rm(folder, { recursive: true });
    const host = join(fleet, one);
    await expect(fleet.settle(host)).rejects.toThrow("ENOENT");
    expect(host.accepting(nowMs)).toBe(false);
  });
});
