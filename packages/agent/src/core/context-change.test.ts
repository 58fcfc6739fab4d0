/** Tools that change the agent's own context: what the next prompt is, what is stored, and what a continued rollout makes of it. */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ContextChange, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall } from "@rolldeck/contracts/segments";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { runRollout } from "./run-rollout.ts";
import type { Trajectory } from "./trajectory.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});
const signal = new AbortController().signal;

/** `next` changes the context as said, the other tools are the usual ones. */
async function run(policy: readonly string[], changes: readonly ContextChange[], agent = {}) {
  let nth = 0;
  const ports = scriptedRollout({
    tokenizer,
    policy,
    tools: {
      get: (call: ToolCall): ToolOutcome => ({ output: `${call.arguments.key}!` }),
      next: (): ToolOutcome => ({ output: "changed", context: changes[Math.min(nth++, changes.length - 1)] }),
      finish: (call: ToolCall): ToolOutcome => ({ output: "", finalAnswer: String(call.arguments.answer) }),
    },
  });
  const spec = rolloutSpec(tokenizer, agent);
  const next = { name: "next", description: "", parameters: { type: "object", properties: {} } };
  const end = await runRollout({ ...spec, tools: [...spec.tools, next] }, null, ports, signal);
  const prompts = ports.requests.map(({ prompt }) => tokenizer.decode(prompt.toArray()));
  return { end, ports, prompts, trajectory: ports.stored() };
}
const opening = "<|user|>find a<|end|><|assistant|>";
const storedTokens = ({ segments }: Trajectory) => segments.reduce((sum, { tokens }) => sum + tokens.length, 0);

describe("restart", () => {
  const restart = (content: string): ContextChange => ({ kind: "restart", messages: [{ role: "user", content }] });

  it("begins the next prompt with its messages alone; what it shares with the opening is stored once", async () => {
    const policy = ['[get(key="a")]', "[next()]", "[next()]", '[finish(answer="7")]'];
    const { end, prompts, trajectory } = await run(policy, [restart("find b"), restart("look")]);
    expect(end).toMatchObject({ ending: "finish_tool", finalAnswer: "7", turns: 4 });
    expect(prompts).toEqual([
      opening,
      `${opening}[get(key="a")]<|end|><|tool|>a!<|end|><|assistant|>`,
      "<|user|>find b<|end|><|assistant|>",
      "<|user|>look<|end|><|assistant|>",
    ]);
    // "<|user|>find " is shared.
    expect(trajectory.turns[1]?.nextRanges?.[0]).toEqual({ start: 0, end: 6 });
    expect(trajectory.turns[2]?.promptRanges).toEqual(trajectory.turns[1]?.nextRanges);
    expect(trajectory.turns.map(({ nextRanges }) => nextRanges !== null)).toEqual([false, true, true, false]);
    // The tool's own word is kept as its result, and is no part of any prompt.
    expect(trajectory.turns[1]?.results[0]?.output).toBe("changed");
  });

  it("is no loop, however often the same call makes it", async () => {
    const { end } = await run(["[next()]"], [restart("x"), restart("y")], { maxTurns: 9 });
    expect(end).toMatchObject({ ending: "turn_limit", turns: 9 });
  });

  it("ends the turn's calls: what comes after it was meant for the old context", async () => {
    const { ports, trajectory } = await run(['[next(), get(key="a")]', '[finish(answer="7")]'], [restart("x")]);
    expect(ports.toolCalls.map(({ name }) => name)).toEqual(["next", "finish"]);
    expect(trajectory.turns[0]?.results[1]).toMatchObject({
      error: { code: "not_run" },
      output: "not run: an earlier call of this turn changed the context",
    });
    expect(ports.log.filter((line) => line === "results 0")).toHaveLength(1);
  });

  it("may be the opening once more: then nothing is stored", async () => {
    const { prompts, trajectory } = await run(["[next()]", '[finish(answer="7")]'], [restart("find a")]);
    expect(prompts).toEqual([opening, opening]);
    expect(trajectory.segments.map(({ origin }) => origin)).toEqual(["template", "sampled", "sampled"]);
    expect(trajectory.turns[0]?.nextRanges).toEqual(trajectory.turns[0]?.promptRanges);
  });

  it("tells the tools again, as at the start", async () => {
    const { prompts } = await run(["[next()]", '[finish(answer="7")]'], [restart("x")], { describeTools: true });
    const [first = "", second = ""] = prompts;
    expect(second.slice(0, second.indexOf("<|user|>"))).toBe(first.slice(0, first.indexOf("<|user|>")));
    expect(second).toMatch(/next[\s\S]*<\|user\|>x<\|end\|><\|assistant\|>$/);
  });

  it("of a call that failed changes nothing", async () => {
    const ports = scriptedRollout({
      tokenizer,
      policy: ['[get(key="a")]', '[finish(answer="7")]'],
      tools: {
        get: () => ({ output: "no", error: { code: "x", message: "no" }, context: restart("x") }),
        finish: () => ({ output: "", finalAnswer: "7" }),
      },
    });
    await runRollout(rolloutSpec(tokenizer), null, ports, signal);
    expect(tokenizer.decode(ports.requests[1]?.prompt.toArray() ?? [])).toContain("<|tool|>no<|end|>");
  });
});

describe("summary", () => {
  it("keeps the opening, the text and the newest turns, token for token", async () => {
    const policy = ['[get(key="a")]', '[get(key="b")]', "[next()]", '[finish(answer="7")]'];
    const turns = (keepTurns: number): ContextChange => ({ kind: "summary", text: "so far", keepTurns });
    const begin = "<|user|>find a<|end|><|user|>so far<|end|><|assistant|>";
    const own = "[next()]<|end|><|tool|>changed<|end|><|assistant|>";
    const before = '[get(key="b")]<|end|><|tool|>b!<|end|><|assistant|>';
    expect((await run(policy, [turns(0)])).prompts.at(-1)).toBe(begin);
    expect((await run(policy, [turns(1)])).prompts.at(-1)).toBe(begin + own);
    const kept = await run(policy, [turns(2)]);
    expect(kept.prompts.at(-1)).toBe(begin + before + own);
    // Opening, summary and each turn: nothing of what stays is stored again.
    const plain = await run(['[get(key="a")]', '[get(key="b")]', '[get(key="c")]', '[finish(answer="7")]'], []);
    expect(storedTokens(kept.trajectory) - storedTokens(plain.trajectory)).toBeLessThan(40);
  });
});

describe("drop-observations", () => {
  const drop = (keep: number): ContextChange => ({ kind: "drop-observations", keep });
  const gap = "<|tool|>[an older result stood here; it was dropped to save room]<|end|><|assistant|>";
  const turn = (said: string, result: string) => `${said}<|end|><|tool|>${result}<|end|><|assistant|>`;

  it("puts one small placeholder in the place of every older observation", async () => {
    const policy = [
      '[get(key="a")]',
      '[get(key="b")]',
      "[next()]",
      '[get(key="c")]',
      "[next()]",
      '[finish(answer="7")]',
    ];
    const { prompts, trajectory } = await run(policy, [drop(2)]);
    const [a, b, c] = ["a", "b", "c"].map((key) => `[get(key="${key}")]`);
    expect(prompts[3]).toBe(`${opening}${a}<|end|>${gap}${turn(`${b}`, "b!")}${turn("[next()]", "changed")}`);
    expect(prompts[5]).toBe(
      `${opening}${a}<|end|>${gap}${b}<|end|>${gap}[next()]<|end|>${gap}${turn(`${c}`, "c!")}${turn("[next()]", "changed")}`,
    );
    const placeholder = tokenizer.encode(gap.slice(8, 40)).join();
    expect(trajectory.segments.filter(({ tokens }) => tokens.join().includes(placeholder))).toHaveLength(1);
  });

  it("changes nothing while there is nothing older", async () => {
    const { trajectory } = await run(["[next()]", '[finish(answer="7")]'], [drop(3)]);
    expect(trajectory.turns[0]?.nextRanges).toBeNull();
  });
});
