/** What reaches a command, and in which order, over a real connection; the command itself is the test's. */
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LinkPair, linkPair } from "../../testing/link-pair.ts";
import { begin, serve } from "../remote/call.ts";
import { deferred } from "../remote/deferred.ts";
import { remoteProcess } from "../remote/remote-process.ts";
import { Stream } from "../remote/stream.ts";
import { serveProcess } from "./serve-process.ts";

const { signal } = new AbortController();
let links: LinkPair;
let heard: string[];
let process: SandboxProcess;
/** How long its terminal takes to have another size. */
let resizeMs: number;

beforeEach(async () => {
  heard = [];
  resizeMs = 30;
  const exited = deferred<{ exitCode: number }>();
  const outputs = { stdout: new PassThrough(), stderr: new PassThrough() };
  process = {
    ...outputs,
    write: async (bytes) => void heard.push(`in ${Buffer.from(bytes).toString()}`),
    endStdin: async () => {
      heard.push("end");
      outputs.stdout.end();
      outputs.stderr.end();
      exited.resolve({ exitCode: 0 });
    },
    resize: async (columns, rows) => {
      await sleep(resizeMs);
      heard.push(`size ${columns}x${rows}`);
    },
    wait: () => exited.promise,
    close: async () => undefined,
  };
  links = await linkPair(({ s, method, params }, link) => {
    const stream = new Stream(link, s);
    const spawn = (request: Parameters<typeof serveProcess>[1]) =>
      serveProcess({ spawn: async () => process }, request, stream);
    void serve(stream, method, params, { spawn: ({ sandbox: _id, ...request }) => spawn(request) }, () => undefined);
    return stream;
  });
});
afterEach(() => links.close());

const spawn = (): Promise<SandboxProcess> => {
  const params = { sandbox: `sbx_${"0".repeat(20)}`, command: ["sh"], tty: { columns: 80, rows: 24 } };
  return remoteProcess(begin(links.caller, "spawn", params, signal), true);
};

describe("a command with a terminal", () => {
  it("has the size it was given before it reads what was sent after that", async () => {
    const talk = await spawn();
    await talk.write(Buffer.from("a"));
    await talk.resize?.(100, 30);
    await talk.write(Buffer.from("b"));
    await talk.resize?.(120, 40);
    await talk.endStdin();
    expect(await talk.wait()).toEqual({ exitCode: 0 });
    const sizes = heard.filter((what) => what.startsWith("size"));
    expect(heard.filter((what) => !what.startsWith("size"))).toEqual(["in a", "in b", "end"]);
    expect(heard.indexOf(sizes[0] ?? "")).toBeLessThan(heard.indexOf("in b"));
    expect([sizes.at(-1), heard.at(-1)]).toEqual(["size 120x40", "end"]);
  });

  it("is given the last of many sizes, not all of them", async () => {
    const talk = await spawn();
    for (let columns = 1; columns <= 500; columns += 1) await talk.resize?.(columns, 10);
    await talk.endStdin();
    await talk.wait();
    expect(heard.at(-2)).toBe("size 500x10");
    expect(heard.length).toBeLessThan(10);
  });
});
