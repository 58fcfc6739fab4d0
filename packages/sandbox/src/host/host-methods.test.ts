/** What a host does when the connection was cut between a deed and its answer. The runtime is the test's: it keeps a list. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecResult, Sandbox, SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { noResources } from "@rolldeck/contracts/ports/sandbox";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LinkPair, linkPair } from "../../testing/link-pair.ts";
import { begin, call, serve } from "../remote/call.ts";
import { Stream } from "../remote/stream.ts";
import type { WireSpec } from "../remote/wire-spec.ts";
import { ArchiveSpool } from "./archive-spool.ts";
import { ByteBudget } from "./byte-budget.ts";
import { ContextFolders } from "./context-folders.ts";
import { HeldSandboxes } from "./held-sandboxes.ts";
import { hostMethods } from "./host-methods.ts";

const { signal } = new AbortController();
let folder: string;
let links: LinkPair;
let there: Map<string, Readonly<Record<string, string>>>;

const idOf = (name: string): string => `sbx_${name.padEnd(20, "0")}`;
const spec = (name: string): WireSpec => ({
  ...{ id: idOf(name), labels: { owner: name }, leaseMs: 60_000, maxLifeMs: 600_000, image: null },
  ...{ resources: noResources, network: { mode: "none" }, workdir: null, environment: {}, services: [] },
});
const gone = (id: string) => new BoundaryError("sandbox", "gone", `${id} is not there`);

function listed(): SandboxRuntime {
  const output = { head: new Uint8Array(), tail: new Uint8Array(), gapBytes: 0, bytes: 0 };
  const result = { exitCode: 0, timedOut: false, flooded: false, outOfMemory: false, durationMs: 0 };
  const boxOf = (id: string): Sandbox => {
    const never = async () => {
      throw new Error("not asked for here");
    };
    const exec = async (): Promise<ExecResult> => ({ ...result, stdout: output, stderr: output });
    return {
      ...{ id, runtime: "process", workdir: `/of/${id}`, exec, spawn: never, killAll: never },
      ...{ readFile: never, writeFile: never, putArchive: never, getArchive: never },
    };
  };
  return {
    ...{ name: "process", isolation: "", limits: [], ailment: async () => null },
    open: async ({ id, labels }: SandboxSpec) => {
      if (there.has(id)) throw new BoundaryError("sandbox", "refused", `${id} is there already`);
      there.set(id, labels);
      return boxOf(id);
    },
    attach: async (id) => {
      if (!there.has(id)) throw gone(id);
      return boxOf(id);
    },
    renew: async (ids) => new Set(ids.filter((id) => there.has(id))),
    close: async (id) => void there.delete(id),
    list: async () => [...there].map(([id, labels]) => ({ id, labels, state: "running", createdAtMs: 0 })),
    disconnect: async () => undefined,
  };
}

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-host-"));
  there = new Map();
  const runtime = listed();
  const handlers = hostMethods({
    ...{ runtime, held: await HeldSandboxes.load(runtime, path.join(folder, "claims")) },
    contexts: new ContextFolders(path.join(folder, "contexts")),
    archives: new ArchiveSpool(path.join(folder, "archives")),
    memory: new ByteBudget(100_000),
    images: { saw: async () => undefined },
    nowMs: () => 0,
  });
  links = await linkPair(({ s, method, params }, link) => {
    const stream = new Stream(link, s);
    void serve(stream, method, params, handlers, () => undefined);
    return stream;
  });
});
afterEach(async () => {
  links.close();
  await rm(folder, { recursive: true, force: true });
});

const held = async () => (await call(links.caller, "held", {}, signal)).sandboxes.map(({ id }) => id).sort();

describe("a sandbox that was taken for a name whose owner never heard of it", () => {
  beforeEach(async () => {
    for (const warm of ["warm1", "warm2"]) await call(links.caller, "open", { spec: spec(warm) }, signal);
    await call(links.caller, "take", { warm: idOf("warm1"), spec: spec("mine") }, signal);
    expect(await held()).toEqual([idOf("mine"), idOf("warm2")]);
  });

  it("ends when the name is opened anew, which is then that sandbox alone", async () => {
    await call(links.caller, "open", { spec: spec("mine") }, signal);
    expect([...there.keys()].sort()).toEqual([idOf("mine"), idOf("warm2")]);
    expect((await call(links.caller, "attach", { sandbox: idOf("mine") }, signal)).workdir).toBe(`/of/${idOf("mine")}`);
    expect([await held(), await readdir(path.join(folder, "claims"))]).toEqual([[idOf("mine"), idOf("warm2")], []]);
  });

  it("ends when another is taken for it", async () => {
    await call(links.caller, "take", { warm: idOf("warm2"), spec: spec("mine") }, signal);
    expect([...there.keys()]).toEqual([idOf("warm2")]);
    expect((await call(links.caller, "attach", { sandbox: idOf("mine") }, signal)).workdir).toBe(
      `/of/${idOf("warm2")}`,
    );
    await call(links.caller, "close", { sandbox: idOf("mine") }, signal);
    expect([there.size, await readdir(path.join(folder, "claims"))]).toEqual([0, []]);
  });
});

describe("what callers send and do not end", () => {
  it("has a bound for all of them together, which is free again when they leave", async () => {
    await call(links.caller, "open", { spec: spec("box") }, signal);
    const command = { sandbox: idOf("box"), command: ["cat"], stdin: true, timeoutMs: 1000 };
    const leaving = new AbortController();
    const waits = begin(links.caller, "exec", command, leaving.signal);
    await waits.stream.write(0, Buffer.alloc(60_000));
    const second = begin(links.caller, "exec", command, signal);
    await second.stream.write(0, Buffer.alloc(60_000));
    await expect(second.result).rejects.toMatchObject({ code: "full", retryable: true });
    leaving.abort(new Error("enough"));
    await expect(waits.result).rejects.toThrow("enough");
    await expect
      .poll(async () => {
        const third = begin(links.caller, "exec", command, signal);
        await third.stream.write(0, Buffer.alloc(60_000));
        third.stream.end(0);
        return third.result.then(({ exitCode }) => exitCode, String);
      })
      .toBe(0);
  });
});
