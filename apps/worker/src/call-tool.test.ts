import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { expect, test, vi } from "vitest";
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

const broken: [string, () => unknown, string, string][] = [
  ["nothing", () => undefined, "bad_outcome", "nothing back"],
  ["null", () => null, "bad_outcome", "nothing back"],
  ["a text", () => "done", "bad_outcome", "a string instead of an outcome"],
  ["a number", () => ({ output: 7 }), "bad_outcome", "output: output must be a text"],
  ["no output", () => ({}), "bad_outcome", "output: output must be a text"],
  ["an answer that is no text", () => ({ output: "", finalAnswer: 7 }), "bad_outcome", "finalAnswer"],
  ["an unknown change", () => ({ output: "", context: { kind: "forget" } }), "bad_outcome", "context.kind"],
  ["an empty restart", () => ({ output: "", context: { kind: "restart", messages: [] } }), "bad_outcome", "messages"],
  ["a getter that throws", () => Object.defineProperty({}, "output", { get: fail("no") }), "tool_error", "no"],
];
test.each(broken)("a tool that gives %s back is told of", async (_what, give, code, message) => {
  // @ts-expect-error: an operator's tool may be written without types
  const outcome = await callTool([tool(async () => give())], call, scope());
  expect(outcome).toMatchObject({ error: { code }, output: expect.stringContaining(message) });
  expect(outcome.finalAnswer ?? outcome.context).toBeUndefined();
});

function fail(thrown: unknown): () => never {
  return () => {
    throw thrown;
  };
}
const circular: Record<string, unknown> = {};
circular.self = circular;
const thrown: [string, unknown, string][] = [
  ["text", "boom", "boom"],
  ["nothing", undefined, "without saying why"],
  ["an empty error", new Error(""), "without saying why"],
  ["an object", { status: 500 }, '{"status":500}'],
  ["a circle", circular, "no error"],
  ["bytes", Buffer.from([0x62, 0xff, 0x00]), "b\ufffd\u2400"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["codes", new Error("\u001b[31mred\u001b[0m\u0000"), "red\u2400"],
];
test.each(thrown)("a tool that throws %s is an observation", async (_what, value, message) => {
  for (const throwing of [tool(fail(value)), tool(async () => fail(value)())]) {
    const outcome = await callTool([throwing], call, scope());
    expect(outcome).toMatchObject({ error: { code: "tool_error" }, output: expect.stringContaining(message) });
  }
});

test("a failure of 10 MB is told in 2 KB", async () => {
  const outcome = await callTool([tool(fail(new Error("x".repeat(10_000_000))))], call, scope());
  expect(Buffer.byteLength(outcome.output)).toBeLessThanOrEqual(2048);
  expect(outcome.output).toContain("bytes cut");
});

test("a tool's own code comes through, and bytes are read as text", async () => {
  const coded = tool(fail(new BoundaryError("tool", "no_table", "no table")));
  expect(await callTool([coded], call, scope())).toMatchObject({ error: { code: "no_table", message: "no table" } });
  // @ts-expect-error: an operator's tool may be written without types
  const bytes = tool(async () => ({ output: Buffer.from([0x61, 0xff, 0xc3, 0xa9]) }));
  expect(await callTool([bytes], call, scope())).toEqual({ output: "a\ufffd\u00e9" });
});

test("200 MB go through as they are: cutting them is the loop's, which also keeps the whole", async () => {
  const huge = "y".repeat(200_000_000);
  expect((await callTool([tool(async () => ({ output: huge }))], call, scope())).output.length).toBe(huge.length);
});

test("a call leaves no timer and no listener, and calls share the rollout's object", async () => {
  const { signal } = new AbortController();
  const added = vi.spyOn(signal, "addEventListener");
  const removed = vi.spyOn(signal, "removeEventListener");
  const seen: unknown[] = [];
  const noting = tool(async (_args, context) => {
    seen.push(context.rollout);
    return { output: "" };
  });
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const [rollout, instance] = [{}, {}];
  await callTool([noting], call, scope({ signal, rollout }));
  await callTool([noting], call, scope({ signal, rollout }));
  await callTool([noting], call, scope({ signal, instance }));
  expect(seen[0] === rollout && seen[1] === rollout && seen[2] === instance).toBe(true);
  expect(removed.mock.calls.length).toBe(added.mock.calls.length);
  expect(timers()).toBe(before);
});
