import { dialects } from "@rolldeck/agent/core/registry";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { StoredTurn } from "@rolldeck/db/reads/read-turns";
import { expect, test } from "vitest";
import { idTokenizer } from "./tokenizers.ts";
import { turnView } from "./turn-text.ts";

const tokenizer = await loadTokenizer(new URL("../../../../infra/models/quickstart", import.meta.url).pathname);

const stored = (text: string): StoredTurn => {
  const tokens = tokenizer.encode(text);
  return {
    turn: 0,
    thread: "",
    notes: [],
    added: [],
    sampled: { tokens, logprobs: null },
    promptTokens: 0,
    sampledTokens: tokens.length,
    cacheHitTokens: 0,
    policyVersion: 0,
    stopReason: "stop",
    sampleMs: 1,
    parseError: null,
    at: "2026-11-30T00:00:00Z",
    promptRanges: [],
    sampledRange: { start: 0, end: tokens.length },
    calls: [],
    contextChange: null,
  };
};
const hermes = { tokenizer, dialect: dialects.hermes };

test("thinking is shown apart, by the run's dialect; the sampled text stays whole", () => {
  const said = 'I look first.</think>So: <tool_call>{"name": "get", "arguments": {}}</tool_call>';
  const view = TurnView.parse(turnView(stored(`<think>${said}`), hermes));
  expect(view.reasoning?.text).toBe("I look first.");
  expect(view.content?.text).toBe("So:");
  expect(view.sampled.text).toBe(`<think>${said}`);
  // The prompt may have opened the thinking.
  expect(turnView(stored(said), hermes).reasoning?.text).toBe("I look first.");
});

test("a text without thinking, of a dialect that is not here, or without its tokenizer is not split", () => {
  const plain = { reasoning: null, content: null };
  expect(turnView(stored("the answer is 7"), hermes)).toMatchObject(plain);
  expect(turnView(stored("<think>a</think>b"), { tokenizer, dialect: null })).toMatchObject(plain);
  expect(turnView(stored("<think>a</think>b"), { ...hermes, tokenizer: idTokenizer })).toMatchObject(plain);
});
