import { fileURLToPath } from "node:url";
import { McpServers } from "@rolldeck/agent/io/mcp/servers";
import { McpServerList } from "@rolldeck/contracts/mcp-servers";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { tasks } from "@rolldeck/tasks/registry";
import { tools } from "@rolldeck/tools/registry";
import { afterAll, expect, test } from "vitest";
import { callTool } from "./call-tool.ts";
import { lostState, rolloutTools } from "./rollout-tools.ts";

const script = fileURLToPath(new URL("../../../packages/agent/testing/mcp-server.mjs", import.meta.url));
const stdio = { command: process.execPath, args: [script, "stdio"] };
const mcp = new McpServers({
  servers: McpServerList.parse({ shared: stdio, own: { ...stdio, perRollout: true } }),
  variable: () => undefined,
  now: () => performance.now(),
  onTrouble: () => {},
});
afterAll(() => mcp.close());

const { signal } = new AbortController();
const agent = { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] };
const config = (...servers: string[]) =>
  RunConfig.parse({
    taskSets: [{ name: "key-chain" }],
    agent: { mcp: servers.map((server) => ({ server, tools: ["echo", "hang", "count"] })) },
  });
const call = (name: string, args = {}) => ({ index: 0, name, arguments: args, raw: "" });

test("a rollout has its task's tools and those of the servers its run names", async () => {
  const plain = await rolloutTools({ tools, mcp }, tasks["key-chain"], config(), signal);
  expect(plain.tools.map(({ name }) => name)).toEqual(tasks["key-chain"].tools);
  const mixed = await rolloutTools({ tools, mcp }, tasks["key-chain"], config("shared"), signal);
  expect(mixed.tools.map(({ name }) => name)).toEqual([
    ...tasks["key-chain"].tools,
    "shared__count",
    "shared__echo",
    "shared__hang",
  ]);
  const scope = { instance: {}, agent, signal, timeoutMs: 20_000 };
  expect(await callTool(mixed.tools, call("shared__echo", { text: "hi" }), scope)).toEqual({ output: "hi" });
  expect(await callTool(mixed.tools, call("shared__hang"), { ...scope, timeoutMs: 100 })).toMatchObject({
    error: { code: "timeout" },
  });
  await mixed.close();
});

test("a server that the worker has not is no rollout's fault", async () => {
  const missing = rolloutTools({ tools, mcp }, tasks["key-chain"], config("other"), signal);
  await expect(missing).rejects.toMatchObject({ boundary: "infrastructure", code: "mcp_unknown" });
});

test("a rollout that called what was its own alone is not continued", async () => {
  const { tools: mounted, close } = await rolloutTools(
    { tools, mcp },
    tasks["key-chain"],
    config("shared", "own"),
    signal,
  );
  const after = (...names: string[]) => lostState({ turns: [turn(names)] }, mounted);
  expect(after("get", "shared__count")).toBeNull();
  expect(after("shared__count", "own__count")).toBe("own__count");
  await close();
});

const turn = (names: string[]) => ({
  ...{ turn: 0, promptRanges: [], promptTokens: 0, sampledSegment: 0, sampledTokens: 0, stopReason: "stop" as const },
  ...{ policyVersion: 0, cacheHitTokens: 0, sampleMs: 0, parseError: null, thread: "", notes: [], nextRanges: null },
  calls: names.map((name) => call(name)),
  results: names.map(() => null),
});
