import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { McpServerList } from "@rolldeck/contracts/mcp-servers";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { afterEach, describe, expect, test } from "vitest";
import type { z } from "zod";
import { processPlace } from "../../../testing/process-place.ts";
import { McpServers, type McpServersOptions } from "./servers.ts";

const script = fileURLToPath(new URL("../../../testing/mcp-server.mjs", import.meta.url));
const stdio = { command: process.execPath, args: [script, "stdio"] };
const { signal } = new AbortController();

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function start(
  servers: z.input<typeof McpServerList>,
  variables: Record<string, string> = {},
  change: Partial<McpServersOptions> = {},
) {
  const trouble: string[] = [];
  const made = new McpServers({
    servers: McpServerList.parse(servers),
    variable: (name) => variables[name],
    now: () => performance.now(),
    onTrouble: (name, what) => trouble.push(`${name}: ${what}`),
    pauseMs: 5,
    ...change,
  });
  ends.push(() => made.close());
  return { made, trouble };
}
const mounted = async (
  made: McpServers,
  server: string,
  tools: string[] | null = null,
  prefix: string | null = null,
) => {
  const { tools: all, close } = await made.mount([{ server, prefix, tools }], signal);
  ends.push(close);
  return all;
};

type Answer = ToolOutcome | { readonly code: string; readonly told: string };
/** Calls as the worker does: a thrown BoundaryError("tool") is what the model is told. */
async function call(
  tools: readonly Tool[],
  name: string,
  args: JsonObject = {},
  more: Partial<ToolContext> = {},
): Promise<Answer> {
  const tool = tools.find((one) => one.name.endsWith(`__${name}`));
  const context: ToolContext = {
    instance: {},
    agent: { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] },
    signal: new AbortController().signal,
    deadlineMs: Date.now() + 20_000,
    ...more,
  };
  return (
    tool?.call(args, context).catch((error) => {
      expect(error).toMatchObject({ boundary: "tool" });
      return { code: error.code, told: error.message };
    }) ?? { code: "none", told: "no such tool" }
  );
}

async function startHttp(env: Record<string, string> = {}, port = 0): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [script, "http", String(port)], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  ends.push(async () => {
    child.kill("SIGKILL");
    await gone;
  });
  const [line] = await once(child.stdout, "data");
  return { url: `http://127.0.0.1:${String(line).trim()}/mcp`, child };
}

describe("a server in a process", () => {
  test("its tools are a rollout's tools, with prefix, schema and filter", async () => {
    const { made } = start({ files: { ...stdio, idempotent: true } });
    const tools = await mounted(made, "files", ["add", "echo"], "f");
    expect(tools.map(({ name, idempotent, stateful }) => [name, idempotent, stateful])).toEqual([
      ["f__add", true, false],
      ["f__echo", true, false],
    ]);
    expect(tools[0]).toMatchObject({
      description: "Does add.",
      parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a", "b"] },
    });
    expect(await call(tools, "add", { a: 2, b: 3 })).toEqual({ output: "5" });
    const all = await mounted(made, "files");
    for (const { name } of all) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(await call(all, "dotted_name")).toEqual({ output: "ok" });
  });

  test("what is no text is named, and a tool's own failure is its outcome", async () => {
    const tools = await mounted(start({ s: stdio }).made, "s");
    expect(await call(tools, "mixed")).toEqual({
      output:
        "seen:\n[image, image/png, 7 bytes: not shown]\ninside\n[file:///a.bin, x/y, 3 bytes: not shown]\n[link to b: file:///b.txt]",
    });
    expect(await call(tools, "fail")).toMatchObject({ output: "the disk is full", error: { code: "mcp_error" } });
    expect(await call(tools, "throw")).toMatchObject({ error: { code: "mcp_error", message: "a bug" } });
    expect(await call(tools, "add", { a: "x" })).toMatchObject({ error: { code: "mcp_error" } });
  });

  test("one that crashes is told of and started anew; what it says on the side is the operator's", async () => {
    const { made, trouble } = start({ s: stdio });
    const tools = await mounted(made, "s");
    expect(await call(tools, "count")).toEqual({ output: "1" });
    const told = await call(tools, "crash");
    expect(told).toMatchObject({ code: "mcp_gone" });
    expect(JSON.stringify(told)).not.toContain("TEST_SECRET");
    expect(trouble.some((line) => line.includes("TEST_SECRET"))).toBe(true);
    expect(await call(tools, "count")).toEqual({ output: "1" });
  });

  test("one that keeps crashing is tried ever more seldom, and as before once it answers", async () => {
    let now = 0;
    const tools = await mounted(start({ s: stdio }, {}, { pauseMs: 10_000, now: () => now }).made, "s");
    for (const seconds of [10, 20, 40, 60, 60]) {
      expect(await call(tools, "crash")).toMatchObject({ code: "mcp_gone" });
      const told = expect.stringContaining(`tried again in ${seconds} s`);
      expect(await call(tools, "count")).toMatchObject({ code: "mcp_down", told });
      now += seconds * 1000;
    }
    expect(await call(tools, "count")).toEqual({ output: "1" });
    await call(tools, "crash");
    expect(await call(tools, "count")).toMatchObject({ told: expect.stringContaining("in 10 s") });
  });

  test("calls that are under way when it crashes all end", async () => {
    const tools = await mounted(start({ s: stdio }).made, "s");
    const waiting = [call(tools, "hang"), call(tools, "hang")];
    await call(tools, "crash");
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ code: "mcp_gone" });
  });

  test("a call that hangs ends at its limit; only a server that is deaf is given up", async () => {
    const { made } = start({ s: { ...stdio, timeoutMs: 300 } });
    const tools = await mounted(made, "s");
    expect(await call(tools, "count")).toEqual({ output: "1" });
    expect(await call(tools, "hang")).toMatchObject({ code: "timeout", told: expect.stringContaining("0.3 s") });
    expect(await call(tools, "count")).toEqual({ output: "2" });
    expect(await call(tools, "freeze")).toMatchObject({ code: "timeout" });
    // The old process never answers again.
    await expect.poll(() => call(tools, "echo", { text: "new" }), { timeout: 30_000 }).toEqual({ output: "new" });
  });

  test("a rollout that is stopped leaves its call at once", async () => {
    const tools = await mounted(start({ s: stdio }).made, "s");
    const stage = new AbortController();
    const tool = tools.find(({ name }) => name === "s__hang");
    const agent = { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] };
    const waiting = tool?.call({}, { instance: {}, agent, signal: stage.signal, deadlineMs: Date.now() + 60_000 });
    await call(tools, "echo", { text: "" });
    stage.abort(new Error("the run stopped"));
    await expect(waiting).rejects.toThrow("the run stopped");
    expect(await call(tools, "echo", { text: "on" })).toEqual({ output: "on" });
  });

  test("an answer without end ends the server, not the worker", async () => {
    const tools = await mounted(start({ s: stdio }).made, "s");
    expect(await call(tools, "big", { bytes: 1_000_000 })).toEqual({ output: "x".repeat(1_000_000) });
    expect(await call(tools, "big", { bytes: 40_000_000 })).toMatchObject({ code: "mcp_gone" });
    expect(await call(tools, "count")).toEqual({ output: "1" });
  });

  test("rollouts share it, or have one each where it keeps something", async () => {
    const { made } = start({ shared: stdio, own: { ...stdio, perRollout: true } });
    const both = () => Promise.all([mounted(made, "shared"), mounted(made, "own")]);
    const [[shared, own], [sharedToo, other]] = [await both(), await both()];
    expect([await call(shared, "count"), await call(sharedToo, "count")]).toEqual([{ output: "1" }, { output: "2" }]);
    expect([await call(own, "count"), await call(other, "count")]).toEqual([{ output: "1" }, { output: "1" }]);
    expect(own[0]?.stateful).toBe(true);
  });

  test("a closed rollout's own process is gone, and starts no more", async () => {
    const { made } = start({ own: { ...stdio, perRollout: true } });
    const { tools, close } = await made.mount([{ server: "own", prefix: null, tools: null }], signal);
    await call(tools, "count");
    await close();
    expect(await call(tools, "count")).toMatchObject({ code: "mcp_closed" });
  });

  test("it gets the variables that the operator gave it, and none of ours", async () => {
    const servers = { s: { ...stdio, env: { PLAIN: "p", TOKEN: { env: "OUR_TOKEN", prefix: "t-" } } } };
    process.env.ROLLDECK_TEST_ONLY = "ours";
    ends.push(() => delete process.env.ROLLDECK_TEST_ONLY);
    const tools = await mounted(start(servers, { OUR_TOKEN: "secret" }).made, "s");
    const values = ["PLAIN", "TOKEN", "OUR_TOKEN", "ROLLDECK_TEST_ONLY"].map((name) =>
      call(tools, "variable", { name }),
    );
    expect(await Promise.all(values)).toEqual(["p", "t-secret", "(unset)", "(unset)"].map((output) => ({ output })));
  });
});

describe("a server over HTTP", () => {
  test("is called with the operator's headers", async () => {
    const { url } = await startHttp({ TEST_KEY: "k" });
    const headers = { authorization: { env: "KEY", prefix: "Bearer " } };
    const tools = await mounted(start({ web: { url, headers } }, { KEY: "k" }).made, "web");
    expect(await call(tools, "add", { a: 1, b: 1 })).toEqual({ output: "2" });
    const wrong = start({ web: { url, headers } }, { KEY: "wrong-canary" }).made;
    const refused = await wrong.mount([{ server: "web", prefix: null, tools: null }], signal).catch((error) => error);
    expect(refused).toMatchObject({ boundary: "infrastructure", code: "mcp_unavailable" });
    expect(String(refused)).not.toContain("wrong-canary");
  });

  test("one that forgot our session gets a new one without the model noticing", async () => {
    const { url } = await startHttp();
    const tools = await mounted(start({ web: { url } }).made, "web");
    expect(await call(tools, "count")).toEqual({ output: "1" });
    await fetch(new URL("/forget", url));
    expect(await call(tools, "count")).toEqual({ output: "1" });
  });

  test("a rollout's own session ends with it", async () => {
    const { url } = await startHttp();
    const { made } = start({ web: { url, perRollout: true } });
    const sessions = async () => (await fetch(new URL("/sessions", url))).text();
    const { tools, close } = await made.mount([{ server: "web", prefix: null, tools: null }], signal);
    expect(await sessions()).toBe("0");
    await call(tools, "count");
    expect(await sessions()).toBe("1");
    await close();
    expect(await sessions()).toBe("0");
  });

  test("one that dies in the middle of an answer ends the call at once; back again, it is used again", async () => {
    const { url } = await startHttp();
    const tools = await mounted(start({ web: { url } }).made, "web");
    const waiting = call(tools, "hang");
    expect(await call(tools, "crash")).toMatchObject({ code: expect.stringMatching(/^mcp_(broken|gone)$/) });
    expect(await waiting).toMatchObject({ code: expect.stringMatching(/^mcp_(broken|gone)$/) });
    expect(await call(tools, "count")).toMatchObject({ code: expect.stringMatching(/^mcp_(gone|down)$/) });
    await startHttp({}, Number(new URL(url).port));
    await expect.poll(async () => call(tools, "count"), { timeout: 20_000 }).toEqual({ output: "1" });
  });

  test("an answer without end breaks off alone", async () => {
    const { url } = await startHttp();
    const tools = await mounted(start({ web: { url } }).made, "web");
    const [large, small] = await Promise.all([
      call(tools, "big", { bytes: 40_000_000 }),
      call(tools, "echo", { text: "here" }),
    ]);
    expect(large).toMatchObject({ code: "mcp_broken", told: expect.stringContaining("longer than") });
    expect(small).toEqual({ output: "here" });
  });
});

describe("a server in the rollout's sandbox", () => {
  const boxed = { boxed: { ...stdio, sandbox: true, env: { GREETING: "hello" } } };
  const inside = async (made: McpServers, place: Sandbox) => {
    const { tools, close } = await made.mount([{ server: "boxed", prefix: null, tools: null }], signal, place);
    ends.push(close);
    return { tools, close };
  };

  test("each rollout has one of its own, started there, and it is gone with the rollout", async () => {
    const { made } = start(boxed);
    const [one, two] = [processPlace(), processPlace()];
    const first = await inside(made, one.sandbox);
    const second = await inside(made, two.sandbox);
    expect(await call(first.tools, "count")).toMatchObject({ output: "1" });
    expect(await call(first.tools, "count")).toMatchObject({ output: "2" });
    expect(await call(second.tools, "count")).toMatchObject({ output: "1" });
    expect(await call(first.tools, "variable", { name: "GREETING" })).toMatchObject({ output: "hello" });
    expect([one.started.length, two.started.length]).toEqual([1, 1]);
    const gone = one.started.map((child) => child.exitCode ?? once(child, "exit"));
    await first.close();
    await Promise.all(gone);
    expect(first.tools.every(({ stateful }) => stateful)).toBe(true);
  });

  test("one that crashes is told of and started anew", async () => {
    const { made } = start(boxed);
    const place = processPlace();
    const { tools } = await inside(made, place.sandbox);
    expect(await call(tools, "crash")).toHaveProperty("told");
    expect(await call(tools, "echo", { text: "again" })).toMatchObject({ output: "again" });
    expect(place.started).toHaveLength(2);
  });

  test("an answer without end ends the server, not the worker", async () => {
    const { made } = start(boxed);
    const { tools } = await inside(made, processPlace().sandbox);
    expect(await call(tools, "big", { bytes: 20 * 1024 * 1024 })).toHaveProperty("told");
    expect(await call(tools, "echo", { text: "still here" })).toMatchObject({ output: "still here" });
  });
});

describe("what can't be mounted", () => {
  const sandboxed = { ...stdio, sandbox: true };
  test.each([
    [[{ server: "other", prefix: null, tools: null }], 'no MCP server "other"'],
    [[{ server: "constructor", prefix: null, tools: null }], 'no MCP server "constructor"'],
    [[{ server: "boxed", prefix: null, tools: null }], "sandbox"],
    [[{ server: "s", prefix: null, tools: ["fly"] }], 'no tool "fly"; it has: echo'],
    [[...Array(2)].map(() => ({ server: "s", prefix: "p", tools: ["echo"] })), "p__echo"],
    [[{ server: "missing", prefix: null, tools: null }], "could not be started"],
    [[{ server: "secret", prefix: null, tools: null }], "the variable NOT_SET is not set"],
  ])("%j: %s", async (mounts, reason) => {
    const { made } = start({
      s: stdio,
      boxed: sandboxed,
      missing: { command: "/no/such/program" },
      secret: { ...stdio, env: { A: { env: "NOT_SET" } } },
    });
    const refused = made.mount(mounts, signal);
    await expect(refused).rejects.toMatchObject({
      boundary: "infrastructure",
      message: expect.stringContaining(reason),
    });
  });

  test("a list says what is wrong with it, and where", () => {
    const issues = McpServerList.safeParse({
      a: { command: "x", timeoutms: 1 },
      b: { url: "ftp://x" },
      c: { url: "http://x", args: [] },
      "../d": { command: "x" },
    }).error?.issues;
    expect(issues?.map(({ path }) => path.join("."))).toEqual(
      expect.arrayContaining([expect.stringMatching(/^a/), "b.url", expect.stringMatching(/^c/), "../d"]),
    );
  });
});
