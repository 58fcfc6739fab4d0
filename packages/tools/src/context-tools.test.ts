import type { AgentView, ToolContext } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { delegate } from "./delegate.ts";
import { dropOldObservations } from "./drop-old-observations.ts";
import { MemoryState, memoryMessages } from "./memory-messages.ts";
import { nextWithSummary } from "./next-with-summary.ts";
import { summariseHistory } from "./summarise-history.ts";
import { think } from "./think.ts";

type Calls = AgentView["calls"];
const agent: AgentView = { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] };
const context = (instance: JsonObject, calls: Calls = [], more: Partial<AgentView> = {}): ToolContext => ({
  instance,
  agent: { ...agent, calls, ...more },
  signal: new AbortController().signal,
  deadlineMs: 1000,
});
const told = (summary: string, failed = false) => ({ name: "next_with_summary", arguments: { summary }, failed });

describe("next_with_summary", () => {
  const instance = { question: "Who?", chunks: ["one", "two", "three"] };
  const state = MemoryState.parse(instance);
  const shown = async (calls: Calls, summary = "m") => {
    const { context: change } = await nextWithSummary.call({ summary }, context(instance, calls));
    return change?.kind === "restart" ? change.messages : null;
  };

  test("shows each part once, then asks for the answer, then has no more", async () => {
    expect(await shown([])).toEqual(memoryMessages(state, 1, "m"));
    expect(await shown([told("a")])).toEqual(memoryMessages(state, 2, "m"));
    expect(await shown([told("a"), told("b")])).toEqual(memoryMessages(state, 3, "m"));
    const late = await nextWithSummary.call({ summary: "m" }, context(instance, [told("a"), told("b"), told("c")]));
    expect(late).toMatchObject({ error: { code: "no_more_parts" }, output: expect.stringContaining("finish") });
    expect(late.context).toBeUndefined();
  });
  test("failed calls and other tools' calls turn no page", async () => {
    const others = [{ name: "get", arguments: {}, failed: false }, told("x", true)];
    expect(await shown(others)).toEqual(memoryMessages(state, 1, "m"));
  });
  test("an instance without parts is the task's mistake, not the model's", async () => {
    const call = nextWithSummary.call({ summary: "" }, context({ question: "?", chunks: [] }));
    await expect(call).rejects.toMatchObject({ boundary: "infrastructure", code: "no_chunks" });
  });
});

describe("memory messages", () => {
  const states = fc.record({
    question: fc.string({ minLength: 1 }),
    chunks: fc.array(
      fc.uuid().map((id) => `<${id}>`),
      { minLength: 1, maxLength: 6 },
    ),
    style: fc.constantFrom<MemoryState["style"]>("full", "short"),
  });
  test("a part is shown alone, with the question and the memory", () => {
    fc.assert(
      fc.property(states, fc.nat(7), fc.uuid(), (state, part, memory) => {
        const text = memoryMessages(state, part, memory)
          .map(({ content }) => content)
          .join("\n");
        expect(state.chunks.filter((chunk) => text.includes(chunk))).toEqual(
          state.chunks.slice(part, part + 1).flatMap((chunk) => state.chunks.filter((other) => other === chunk)),
        );
        expect(text).toContain(state.question);
        expect(text).toContain(memory);
      }),
    );
  });
  test("the short style is nothing but what is needed", () => {
    const state = MemoryState.parse({ question: "k3", chunks: ["a=1 k3=7", "b=2"], style: "short" });
    expect(memoryMessages(state, 0, "")).toEqual([{ role: "user", content: "q k3\nm \nt a=1 k3=7" }]);
    expect(memoryMessages(state, 2, "7")).toEqual([{ role: "user", content: "q k3\nm 7\nend" }]);
  });
  test("the full style says which part of how many, and that no part is left", () => {
    const state = MemoryState.parse({ question: "Who?", chunks: ["a", "b"] });
    expect(memoryMessages(state, 0, "").at(-1)?.content).toContain("Your memory:\n(empty)\n\nPart 1 of 2:\na");
    expect(memoryMessages(state, 2, "it was Bo").at(-1)?.content).toContain("All 2 parts are read");
  });
});

test("summarise_history keeps the newest turn unless told otherwise", async () => {
  const call = (args: JsonObject) => summariseHistory.call(args, context({}));
  expect((await call({ summary: "did a" })).context).toEqual({ kind: "summary", text: "did a", keepTurns: 1 });
  expect((await call({ summary: "did a", keep_turns: 0 })).context).toMatchObject({ keepTurns: 0 });
  const wrongs: JsonObject[] = [
    { summary: " " },
    { summary: "a", keep_turns: -1 },
    { summary: "a", keep_turns: 0.5 },
    {},
  ];
  for (const wrong of wrongs) expect(await call(wrong)).toMatchObject({ error: { code: "bad_arguments" } });
});

test("drop_old_observations keeps as many as it is told to", async () => {
  const call = (args: JsonObject) => dropOldObservations.call(args, context({}));
  expect((await call({})).context).toEqual({ kind: "drop-observations", keep: 3 });
  expect((await call({ keep: 0 })).context).toEqual({ kind: "drop-observations", keep: 0 });
  for (const wrong of [{ keep: -1 }, { keep: "all" }, { keep: 1e9 }])
    expect(await call(wrong)).toMatchObject({ error: { code: "bad_arguments" } });
});

describe("delegate", () => {
  const tools = ["get", "delegate", "finish"];
  test("gives the helper the text, the caller's other tools and no more turns than are left", () => {
    const scene = context({}, [], { tools, turn: 5 });
    expect(delegate.delegate?.({ task: "find k" }, scene)).toEqual({
      messages: [{ role: "user", content: "find k" }],
      tools: ["get", "finish"],
      maxTurns: 3,
    });
    expect(delegate.delegate?.({ task: "find k", max_turns: 2 }, scene)?.maxTurns).toBe(2);
    expect(delegate.delegate?.({ task: "x" }, context({}, [], { turn: 8 }))?.maxTurns).toBe(1);
  });
  test("bad arguments start no helper", () => {
    expect(() => delegate.delegate?.({ task: "" }, context({}))).toThrow(
      expect.objectContaining({ boundary: "tool", code: "bad_arguments" }),
    );
  });
});

test("think does nothing", async () => {
  expect(await think.call({ thought: "hm" }, context({}))).toEqual({ output: "noted" });
});

test("what a model may leave out is not required of it, and nothing unknown is allowed", () => {
  expect(summariseHistory.parameters).toMatchObject({ required: ["summary"], additionalProperties: false });
  expect(dropOldObservations.parameters.required ?? []).toEqual([]);
});
