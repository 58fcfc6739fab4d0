/** Hints: when each is said, what it says, and that it is told apart from observations. */

import type { HintName } from "@rolldeck/contracts/agent-config";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, describe, expect, it } from "vitest";
import { playScript } from "../../../testing/play-script.ts";
import { quickstartFolder } from "../../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../../io/load-tokenizer.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

type Played = Parameters<typeof playScript> extends [Tokenizer, ...infer Rest] ? Rest : never;
const run = (...played: Played) => playScript(tokenizer, ...played);
const finish = '[finish(answer="7")]';

describe("hints", () => {
  const with_ = (hints: HintName[], rest: object = {}) => ({ hints, ...rest });
  const told = async (policy: Parameters<typeof run>[0], agent: object, tools?: Parameters<typeof run>[3]) => {
    const { segments, ports, transcript } = await run(policy, agent, {}, tools);
    const hints = segments.filter(({ origin }) => origin === "hint").map(({ tokens }) => tokenizer.decode([...tokens]));
    return { hints, segments, ports, transcript };
  };
  const failing = {
    get: () => ({ output: "no", error: { code: "x", message: "no" } }),
    finish: () => ({ output: "", finalAnswer: "" }),
  };

  it("are segments of their own after the observation, and the model sees both in full", async () => {
    const { hints, segments, transcript } = await told(
      ['[get(key="a")]', finish],
      with_(["steps-left"], { maxTurns: 2 }),
    );
    expect(segments.map(({ origin }) => origin)).toEqual(["template", "sampled", "observation", "hint", "sampled"]);
    expect(hints).toEqual([
      "<|user|>hint: this is your last turn: call finish with your answer now<|end|><|assistant|>",
    ]);
    expect(transcript).toContain("<|tool|>next after a<|end|><|user|>hint: this is your last turn");
  });
  it("are off unless the config or the task switches them on", async () => {
    expect((await told(['[get(key="a")]', finish], {})).hints).toEqual([]);
    const { segments } = await run(['[get(key="a")]', finish], {}, { defaults: { hints: ["steps-left"] } });
    expect(segments.filter(({ origin }) => origin === "hint")).toHaveLength(1);
    const off = await run(['[get(key="a")]', finish], { hints: [] }, { defaults: { hints: ["steps-left"] } });
    expect(off.segments.filter(({ origin }) => origin === "hint")).toEqual([]);
  });
  it("say the turns that are left, one fewer each turn", async () => {
    const { hints } = await told((turn) => `[get(key="${turn}")]`, with_(["steps-left"], { maxTurns: 4 }));
    expect(hints.map((hint) => /hint: (\d+) turns|last turn/.exec(hint)?.[1] ?? "last")).toEqual(["3", "2", "last"]);
  });
  it("say when the context is nearly full, counting what the observation takes", async () => {
    const agent = with_(["context-nearly-full"], { maxContextTokens: 200 });
    const long = { ...failing, get: () => ({ output: "y".repeat(150) }) };
    const { hints } = await told(['[get(key="a")]', finish], agent, long);
    expect(hints).toEqual([expect.stringMatching(/hint: the context is nearly full, about \d+ tokens are left/)]);
    expect((await told(['[get(key="a")]', finish], agent)).hints).toEqual([]);
  });
  it("show a call's form after a malformed one, besides the error itself", async () => {
    const { hints } = await told(['[get("b")]', finish], with_(["malformed-call"]));
    expect(hints).toHaveLength(2);
    expect(hints[0]).toContain("<|user|>error: a tool call could not be read");
    expect(hints[1]).toContain('hint: write the call exactly in this form, with nothing after it:\n[get(key="...")]');
  });
  it("tell after repeated failures to try something else, and stop once it works", async () => {
    let n = 0;
    const tools = { ...failing, get: () => (n++ < 3 ? failing.get() : { output: "ok" }) };
    const policy = (turn: number) => (turn < 5 ? `[get(key="${turn}")]` : finish);
    const { hints } = await told(policy, with_(["repeated-failure"]), tools);
    expect(hints.map((hint) => /failed (\d) times/.exec(hint)?.[1])).toEqual(["2", "3"]);
    expect(hints[0]).toContain("or use another tool (finish)");
  });
  it("tell after a failed edit to copy the text", async () => {
    const edit = { name: "edit", description: "", parameters: { type: "object" } };
    const { segments } = await run(
      ['[edit(old_str="a", new_str="b")]'],
      with_(["failed-edit"], { maxTurns: 2 }),
      { tools: [edit] },
      {
        edit: failing.get,
      },
    );
    const hint = segments.find(({ origin }) => origin === "hint");
    expect(tokenizer.decode([...(hint?.tokens ?? [])])).toContain("copy old_str from it exactly");
  });
  it("ask not to stop early, up to the threshold", async () => {
    const { hints } = await told(
      (turn) => `[get(key="${turn}")]`,
      with_(["dont-stop-early"], { earlyStepThreshold: 3, maxTurns: 5 }),
    );
    expect(hints.map((hint) => /at least (\d) more turns?/.exec(hint)?.[1])).toEqual(["2", "1"]);
  });
  it("come several at once, each a segment, after feedback where there is any", async () => {
    const { hints, segments } = await told(["hm", finish], with_(["steps-left", "malformed-call"]));
    expect(hints.map((hint) => hint.slice(8, 13))).toEqual(["error", "hint:", "hint:"]);
    expect(segments.map(({ origin }) => origin)).toEqual(["template", "sampled", "hint", "hint", "hint", "sampled"]);
  });
});

describe("templates that want users and assistants in turn", () => {
  /** As families that raise an exception for two user messages in a row. */
  const strict = (): Tokenizer => ({
    ...tokenizer,
    vocabSize: tokenizer.vocabSize,
    stopTokens: tokenizer.stopTokens,
    encode: (text) => tokenizer.encode(text),
    decode: (tokens, options) => tokenizer.decode(tokens, options),
    tokenTexts: (tokens) => tokenizer.tokenTexts(tokens),
    render: (messages, options) => {
      if (messages.some(({ role }, place) => role === "user" && messages[place - 1]?.role === "user"))
        throw new Error("roles must alternate");
      return tokenizer.render(messages, options);
    },
  });
  it("get feedback and hints in one message", async () => {
    const { segments, end } = await run(["hm", finish], { hints: ["steps-left"] }, { tokenizer: strict() });
    const hints = segments.filter(({ origin }) => origin === "hint").map(({ tokens }) => tokenizer.decode([...tokens]));
    expect(hints).toEqual([
      expect.stringMatching(/^<\|user\|>error: no tool call[^<]*\n\nhint: 49 turns are left[^<]*<\|end\|>/),
    ]);
    expect(end.ending).toBe("finish_tool");
  });
});
