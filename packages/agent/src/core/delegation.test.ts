/** Sub-agents: a call that is a thread of the same trajectory. */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { Delegation } from "@rolldeck/contracts/ports/tool";
import type { ToolCall } from "@rolldeck/contracts/segments";
import { beforeAll, describe, expect, it } from "vitest";
import { getAndFinish, quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { runRollout } from "./run-rollout.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});
const signal = new AbortController().signal;

const ask = {
  name: "ask",
  description: "",
  parameters: { type: "object", properties: { task: { type: "string" } }, required: ["task"] },
};

async function run(policy: readonly string[], delegation: Partial<Delegation> = {}, agent = {}) {
  const ports = scriptedRollout({
    tokenizer,
    policy,
    delegations: {
      ask: (call: ToolCall) => ({
        messages: [{ role: "user", content: String(call.arguments.task) }],
        tools: ["get", "finish", "ask"],
        maxTurns: 3,
        ...delegation,
      }),
    },
  });
  const tools = [...getAndFinish, ask];
  const end = await runRollout(rolloutSpec(tokenizer, agent, { tools }), null, ports, signal);
  const { turns, segments } = ports.stored();
  const prompts = ports.requests.map(({ prompt }) => tokenizer.decode(prompt.toArray()));
  return { end, ports, prompts, turns, segments };
}

describe("a sub-agent", () => {
  it("works in its own context and its answer is the call's output", async () => {
    const { end, prompts, turns, ports } = await run([
      '[get(key="a"), ask(task="b?")]',
      '[get(key="b")]',
      '[finish(answer="b is 3")]',
      '[finish(answer="7")]',
    ]);
    expect(end).toMatchObject({ ending: "finish_tool", finalAnswer: "7", turns: 4 });
    expect(end.toolCalls.map(({ name }) => name)).toEqual(["get", "ask", "get", "finish", "finish"]);
    expect(turns.map(({ thread }) => thread)).toEqual(["", "0.1", "0.1", ""]);
    expect(prompts[1]).toBe("<|user|>b?<|end|><|assistant|>");
    expect(prompts[3]).toBe(
      '<|user|>find a<|end|><|assistant|>[get(key="a"), ask(task="b?")]<|end|>' +
        "<|tool|>next after a<|end|><|tool|>b is 3<|end|><|assistant|>",
    );
    // Its turns lie between: the parent's next prompt is two ranges, said with the results.
    expect(turns[0]?.nextRanges).toHaveLength(2);
    expect(turns[3]?.promptRanges).toEqual(turns[0]?.nextRanges);
    expect(ports.views[1]).toMatchObject({ turn: 0, maxTurns: 3, calls: [] });
    expect(ports.views.at(-1)).toMatchObject({ turn: 1, calls: [{ name: "get" }, { name: "ask", failed: false }] });
  });

  it("gets only the tools it was given", async () => {
    const { turns } = await run(
      ['[ask(task="b?")]', '[get(key="b")]', '[finish(answer="x")]', '[finish(answer="7")]'],
      {
        tools: ["finish"],
      },
    );
    expect(turns[1]?.results[0]?.output).toBe('error: there is no tool named "get"; the tools are: finish');
  });

  it.each([
    ["turn limit", { maxTurns: 1 }, ['[ask(task="b?")]', '[get(key="b")]', '[finish(answer="7")]']],
    [
      "stuck in a loop: 3 turns with the same calls, all of them errors",
      { maxTurns: 9 },
      ['[ask(task="b?")]', "[got()]", "[got()]", "[got()]", '[finish(answer="7")]'],
    ],
  ])("that ends without an answer (%s) is a failed call, and the parent goes on", async (why, delegation, policy) => {
    const { end, turns } = await run(policy, delegation);
    expect(end).toMatchObject({ ending: "finish_tool", finalAnswer: "7" });
    const [result] = turns[0]?.results ?? [];
    expect(result?.error?.code).toBe("sub_agent");
    expect(result?.output).toContain(why.split(": ").at(-1));
  });

  it("may have a sub-agent of its own, and that one none", async () => {
    const { end, turns } = await run([
      '[ask(task="1")]',
      '[ask(task="2")]',
      '[ask(task="3")]',
      '[finish(answer="c")]',
      '[finish(answer="b")]',
      '[finish(answer="a")]',
    ]);
    expect(end).toMatchObject({ finalAnswer: "a", turns: 6 });
    expect(turns.map(({ thread }) => thread)).toEqual(["", "0.0", "0.0/1.0", "0.0/1.0", "0.0", ""]);
    expect(turns[2]?.results[0]).toMatchObject({ error: { code: "too_deep" } });
  });

  it("without tools answers in words; with a full context it has none", async () => {
    const words = await run(['[ask(task="b?")]', "it is 3", '[finish(answer="7")]'], { tools: [] });
    expect(words.turns[0]?.results[0]?.output).toBe("it is 3");
    const full = await run(
      ['[ask(task="b?")]', '[finish(answer="7")]'],
      {
        messages: [{ role: "user", content: "x".repeat(500) }],
      },
      { maxContextTokens: 400 },
    );
    expect(full.end.finalAnswer).toBe("7");
    expect(full.turns.map(({ thread }) => thread)).toEqual(["", ""]);
    expect(full.turns[0]?.results[0]?.output).toContain("of 400 context tokens are used");
  });

  it("whose context fills up later leaves its parent's as it was", async () => {
    const policy = ['[ask(task="b?")]', '[get(key="b")]', '[finish(answer="7")]'];
    const { prompts, turns } = await run(
      policy,
      { messages: [{ role: "user", content: "x".repeat(150) }] },
      { maxContextTokens: 180 },
    );
    expect(turns.map(({ thread }) => thread)).toEqual(["", "0.0", ""]);
    expect(prompts.at(-1)).toMatch(
      /^<\|user\|>find a<\|end\|><\|assistant\|>\[ask\(task="b\?"\)\]<\|end\|><\|tool\|>error: the sub-agent/,
    );
  });
});
