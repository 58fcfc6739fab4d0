/** Several calls, cut turns, unreadable turns, loops, caps: what is run, what the model is told, what is noted. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { TurnNote } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { playScript } from "../../testing/play-script.ts";
import { quickstartFolder, rolloutSpec, saying } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { hermes } from "./dialects/hermes.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

type Played = Parameters<typeof playScript> extends [Tokenizer, ...infer Rest] ? Rest : never;
const run = (...played: Played) => playScript(tokenizer, ...played);
const finish = '[finish(answer="7")]';

describe("several calls in one turn", () => {
  const policy = ['[get(key="a"), get(key="b")]', finish];
  it("all run in order unless someone says otherwise", async () => {
    const { ports, turns } = await run(policy);
    expect(ports.toolCalls.map((call) => call.arguments.key ?? call.name)).toEqual(["a", "b", "finish"]);
    expect(turns[0]?.notes).toEqual([]);
  });
  it("first only: the others are noted and are no calls", async () => {
    const { ports, turns } = await run(policy, { callPolicy: "first" });
    expect(ports.toolCalls).toHaveLength(2);
    expect(turns[0]?.calls).toHaveLength(1);
    expect(turns[0]?.notes).toEqual([{ kind: "calls", message: 'first call only, left out: "get"' }]);
  });
  it("refused: none runs, the model is told, and it counts as a turn without a usable call", async () => {
    const { end, ports, turns, transcript } = await run(policy, { callPolicy: "refuse" });
    expect(ports.toolCalls.map(({ name }) => name)).toEqual(["finish"]);
    expect(turns[0]).toMatchObject({ calls: [], notes: [{ kind: "calls" }] });
    expect(transcript).toContain("<|user|>error: one call a turn, please: this turn held 2");
    expect(end.ending).toBe("finish_tool");
    expect((await run(policy.slice(0, 1), { callPolicy: "refuse", parseRetries: 1 })).end.ending).toBe("no_call");
  });
  it("beyond the limit are left out, and the model is told in full", async () => {
    const { end, ports, turns, transcript } = await run(policy, { maxCallsPerTurn: 1 });
    expect(ports.toolCalls.map((call) => call.arguments.key ?? call.name)).toEqual(["a", "finish"]);
    expect(turns[0]?.notes).toEqual([{ kind: "calls", message: "2 calls in one turn, the first 1 were run" }]);
    expect(transcript).toContain(
      "next after a<|end|><|user|>error: this turn held 2 calls and only the first 1 were run",
    );
    expect(end.ending).toBe("finish_tool");
  });
  it("is the task's matter where the config is silent", async () => {
    expect((await run(policy, {}, { defaults: { callPolicy: "first" } })).ports.toolCalls).toHaveLength(2);
    const both = await run(policy, { callPolicy: "all" }, { defaults: { callPolicy: "first" } });
    expect(both.ports.toolCalls).toHaveLength(3);
  });
});

describe("a turn that is cut (fault 9)", () => {
  const cut = (text: string) => (): SampleResult => {
    const said = saying(tokenizer, text, { stopReason: "length" });
    return { ...said, tokens: said.tokens.slice(0, -1), logprobs: said.logprobs?.slice(0, -1) ?? null };
  };
  it("ends the rollout by default, with a note", async () => {
    const { end, turns } = await run([cut('[get(key="a')]);
    expect(end).toMatchObject({ ending: "length", reason: "turn 0 was cut after 11 tokens" });
    expect(turns[0]?.notes).toEqual([{ kind: "truncated", message: "cut after 11 tokens, before its end token" }]);
  });
  it("or the model is told that it was cut, never that it forgot, at most K times in a row", async () => {
    const tell = { onLength: "tell", lengthRetries: 2 } as const;
    const { end, segments, transcript, turns } = await run([cut('[get(key="a'), cut("[get("), finish], tell);
    expect(end).toMatchObject({ ending: "finish_tool", turns: 3 });
    expect(transcript).toContain(
      '[get(key="a<|user|>your last turn was cut after 11 tokens, before its end; nothing of it was run.',
    );
    expect(transcript).not.toContain("no tool call");
    expect(segments.map(({ origin }) => origin)).toEqual(["template", "sampled", "hint", "sampled", "hint", "sampled"]);
    expect(turns[0]).toMatchObject({ stopReason: "length", calls: [] });
    expect((await run([cut("x")], tell)).end).toMatchObject({ ending: "length", turns: 3 });
    const between = await run([cut("x"), cut("y"), '[get(key="a")]', cut("z"), cut("z"), finish], tell);
    expect(between.end.ending).toBe("finish_tool");
  });
  it("is told to think less when it was all thinking", async () => {
    const { transcript } = await run([cut("<think>hmm, so"), finish], { onLength: "tell" });
    expect(transcript).toContain("All of it was thinking: think less this time and write the call");
  });
  it("is known by its missing end token, whatever the server says", async () => {
    const stop = () => {
      const said = cut("[get(")();
      return { ...said, stopReason: "stop" as const };
    };
    const { end, ports } = await run([stop, finish], { onLength: "tell" });
    expect(end.ending).toBe("finish_tool");
    expect(ports.toolCalls).toHaveLength(1);
  });
  it("that fills the context ends it all the same", async () => {
    const { end } = await run(["z".repeat(100)], { maxContextTokens: 40, onLength: "tell" });
    expect(end.ending).toBe("context_full");
  });
});

describe("notes", () => {
  it("say once a rollout that the model writes another dialect", async () => {
    const other = '<tool_call>{"name": "get", "arguments": {}}</tool_call>';
    const { turns } = await run([other, other, finish]);
    expect(turns.map(({ notes }) => notes.map(({ kind }) => kind))).toEqual([["dialect"], [], []]);
    expect(turns[0]?.notes[0]?.message).toContain("this run reads pythonic");
  });
  it("say what was mended and what was read otherwise, before the call runs", async () => {
    const tools = [
      { name: "at", description: "", parameters: { type: "object", properties: { n: { type: "integer" } } } },
    ];
    const { turns, ports } = await run(['[at(n="4")]'], { maxTurns: 1 }, { tools }, { at: () => ({ output: "ok" }) });
    expect(turns[0]?.notes).toEqual([{ kind: "coercion", message: 'at: n: "4" read as integer' }]);
    expect(turns[0]?.calls[0]?.arguments).toEqual({ n: "4" });
    expect(ports.toolCalls[0]?.arguments).toEqual({ n: 4 });
    const fenced = '<tool_call>\n```json\n{"name": "get", "arguments": {"key": "a",}}\n```\n</tool_call>';
    const mended = await run([fenced], { maxTurns: 1 }, { dialect: hermes });
    expect(mended.turns[0]?.notes.every(({ kind }) => kind === "repair")).toBe(true);
    expect(mended.turns[0]?.notes.length).toBeGreaterThan(0);
  });
  it("keep what the adapter found odd", async () => {
    const notes = [{ kind: "usage", message: "7 ids, 12 completion tokens" }] as const;
    const { turns } = await run([() => saying(tokenizer, finish, { notes })]);
    expect(turns[0]?.notes).toEqual(notes);
  });
});

describe("a context that is full for the server alone (fault 31)", () => {
  it("ends the rollout as full, with the server's words and what was committed", async () => {
    const refuse = () => {
      throw new BoundaryError("model-server", "context_full", "at most 4096 tokens, 5000 were sent");
    };
    const { end, turns } = await run(['[get(key="a")]', refuse]);
    expect(end).toMatchObject({ ending: "context_full", turns: 1, reason: "at most 4096 tokens, 5000 were sent" });
    expect(turns[0]?.results).toHaveLength(1);
    const other = () => {
      throw new BoundaryError("model-server", "unreachable", "gone", { retryable: true });
    };
    await expect(run(['[get(key="a")]', other])).rejects.toMatchObject({ code: "unreachable" });
  });
});

describe("loops", () => {
  it("are two turns in alternation, three times", async () => {
    const [a, b] = ['[get(key="a")]', '[get(key="b")]'];
    expect((await run((turn) => (turn % 2 === 0 ? a : b), { maxTurns: 20 })).end).toMatchObject({
      ending: "loop",
      turns: 6,
      reason: "the same two turns in alternation, three times, with the same results",
    });
    let n = 0;
    const changing = { get: () => ({ output: `${n++}` }) };
    expect((await run((turn) => (turn % 2 === 0 ? a : b), { maxTurns: 9 }, {}, changing)).end.ending).toBe(
      "turn_limit",
    );
  });
  it("are three turns of the same words without a call", async () => {
    const { end } = await run(["let me think"], { parseRetries: 9 });
    expect(end).toMatchObject({ ending: "loop", turns: 3 });
    expect((await run((turn) => `thought ${turn}`, { parseRetries: 9, maxTurns: 6 })).end.ending).toBe("turn_limit");
  });
  it("are the same bad call in three turns, whatever stands beside it (fault 7)", async () => {
    const { end } = await run((turn) => `[search_web(q="a"), get(key="${turn}")]`);
    expect(end).toMatchObject({ ending: "loop", turns: 3, reason: "the same call that can't run in 3 turns in a row" });
  });
});

describe("output caps", () => {
  const long = {
    get: () => ({ output: `head${"x".repeat(5000)}tail` }),
    finish: () => ({ output: "", finalAnswer: "" }),
  };
  it("keep head and tail in tokens, the size of the whole, and the whole as an artifact", async () => {
    const { turns, ports } = await run(['[get(key="a")]', finish], { maxOutputTokens: 100 }, {}, long);
    const [result] = turns[0]?.results ?? [];
    expect(tokenizer.encode(result?.output ?? "").length).toBeLessThanOrEqual(100);
    expect(result?.output).toMatch(/^headx+\n\[\.\.\. \d+ of 5008 tokens cut \.\.\.\]\nx+tail$/);
    expect(result?.wholeBytes).toBe(5008);
    expect(ports.artifacts).toEqual([{ turn: 0, index: 0, name: "output.txt", text: `head${"x".repeat(5000)}tail` }]);
  });
  it("say in bytes what the bytes' cap cut", async () => {
    const { turns } = await run(['[get(key="a")]', finish], { maxOutputBytes: 200 }, {}, long);
    expect(turns[0]?.results[0]?.output).toMatch(/of 5008 bytes cut/);
    expect(turns[0]?.results[0]?.wholeBytes).toBe(5008);
  });
  it("hold for any text, in any script, and never split a character", () =>
    fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", maxLength: 400 }),
        fc.integer({ min: 16, max: 90 }),
        async (text, cap) => {
          const shown = await run(
            ['[get(key="a")]', finish],
            { maxOutputTokens: cap, maxContextTokens: 9000 },
            {},
            {
              ...long,
              get: () => ({ output: text }),
            },
          );
          const { output = "", wholeBytes } = shown.turns[0]?.results[0] ?? {};
          expect(tokenizer.encode(output).length).toBeLessThanOrEqual(cap);
          if (wholeBytes !== undefined && !text.includes("\ufffd")) expect(output).not.toContain("\ufffd");
        },
      ),
      { numRuns: 60 },
    ));
});

describe("notes on a turn", () => {
  it("are short and few, whatever the model or its server writes: longer ones could not be read back", async () => {
    const long = "n".repeat(300);
    const calls = (call: string) => `[${Array.from({ length: 200 }, () => call).join(", ")}]`;
    const server = (): SampleResult =>
      saying(tokenizer, finish, { notes: [{ kind: "usage", message: `ended with ${"r".repeat(2_000)}` }] });
    const agent = { maxCallsPerTurn: 1000, maxContextTokens: 500_000, sampling: { maxTokensPerTurn: 100_000 } };
    const number = { ...rolloutSpec(tokenizer).tools[0], name: "get" };
    const tools = [
      { ...number, description: "", parameters: { type: "object", properties: { key: { type: "integer" } } } },
      ...rolloutSpec(tokenizer).tools.slice(1),
    ];
    const first = await run([calls(`${long}(key="a")`), server], { ...agent, callPolicy: "first" });
    const coerced = await run([calls('get(key="5")'), finish], agent, { tools });
    const all = [...first.turns, ...coerced.turns];
    for (const { notes } of all) {
      for (const note of notes) expect(TurnNote.parse(note)).toEqual(note);
      expect(notes.length).toBeLessThan(30);
    }
    expect(all.map(({ notes }) => notes.at(-1)?.message.slice(-12))).toEqual([
      'n", 194 more',
      "r".repeat(12),
      "and 180 more",
      undefined,
    ]);
  });
});
