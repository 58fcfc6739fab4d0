import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { expect, test } from "vitest";
import { callTool } from "./call-tool.ts";

const tool = (call: Tool["call"]): Tool => ({ name: "t", description: "", parameters: {}, idempotent: true, call });
const call = { index: 0, name: "t", arguments: {}, raw: "t()" };
const agent = { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] };
const scope = (change = {}) => ({
  instance: {},
  agent,
  signal: new AbortController().signal,
  timeoutMs: 60_000,
  ...change,
});

test("a tool that throws is an observation", async () => {
  const thrown = tool(() => Promise.reject(new Error("no such file")));
  expect(await callTool([thrown], call, scope())).toMatchObject({
    error: { code: "tool_error", message: "no such file" },
  });
});

test("a tool that hangs is timed out and told to stop", async () => {
  let told = false;
  const hanging = tool(
    (_args, { signal }) =>
      new Promise(() => {
        signal.addEventListener("abort", () => {
          told = true;
        });
      }),
  );
  const outcome = await callTool([hanging], call, scope({ timeoutMs: 20 }));
  expect(outcome).toMatchObject({ output: "timed out after 0.02 s", error: { code: "timeout" } });
  expect(told).toBe(true);
});

test("a lost sandbox is no observation, nor is the stage's own end", async () => {
  const lost = tool(() => Promise.reject(new BoundaryError("sandbox", "gone", "gone")));
  await expect(callTool([lost], call, scope())).rejects.toMatchObject({ boundary: "sandbox" });
  const controller = new AbortController();
  const hanging = tool(() => new Promise(() => undefined));
  const waiting = callTool([hanging], call, scope({ signal: controller.signal }));
  controller.abort(new Error("the run stopped"));
  await expect(waiting).rejects.toThrow("the run stopped");
});

test("a name without a tool is answered with the names there are", async () => {
  const outcome = await callTool([tool(async () => ({ output: "" }))], { ...call, name: "x".repeat(300) }, scope());
  expect(outcome.error?.code).toBe("unknown_tool");
  expect(outcome.output).toContain("tools: t");
  expect(outcome.output.length).toBeLessThan(200);
});
