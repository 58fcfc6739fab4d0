/** A model that writes thousands of calls in one turn: each is run, and none pays for all the others. */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, expect, test, vi } from "vitest";
import { quickstartFolder, rolloutSpec, saying, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { runRollout } from "./run-rollout.ts";
import { resultsInOrder } from "./trajectory.ts";

vi.setConfig({ testTimeout: 30_000 });

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

// Where every call looks at every pair of calls, these alone take minutes.
const many = 4_000;

test("all of them run, in order", async () => {
  const written = `[${Array.from({ length: many }, (_, nth) => `get(key="${nth}")`).join(", ")}]`;
  const script = scriptedRollout({ tokenizer, policy: [""] });
  const ports = {
    ...script,
    sample: async () => saying(tokenizer, script.toolCalls.length === 0 ? written : '[finish(answer="7")]'),
    // Storage that looks at nothing: this is about the loop.
    commitTurn: async () => {},
    commitResults: async () => {},
  };
  const agent = { maxCallsPerTurn: 10_000, maxContextTokens: 1_000_000, sampling: { maxTokensPerTurn: 131_072 } };
  const end = await runRollout(rolloutSpec(tokenizer, agent), null, ports, new AbortController().signal);
  expect(end).toMatchObject({ ending: "finish_tool", finalAnswer: "7", turns: 2 });
  expect(end.toolCalls).toHaveLength(many + 1);
  expect(script.toolCalls.map((call) => call.arguments.key)).toEqual([
    ...Array.from({ length: many }, (_, nth) => String(nth)),
    undefined,
  ]);
});

test("results are found by their call's index, whatever their order", () => {
  const call = (index: number) => ({ index, name: "get", arguments: {}, raw: "" });
  const result = (index: number) => ({ index, output: `${index}`, error: null, durationMs: 0 });
  const calls = [call(0), call(1), call(2)];
  const found = (results: (ReturnType<typeof result> | null)[]) =>
    resultsInOrder({ calls, results }).map((one) => one?.index ?? null);
  expect(found([result(0), null, null])).toEqual([0, null, null]);
  expect(found([null, result(2), result(0)])).toEqual([0, null, 2]);
  expect(found([result(2)])).toEqual([null, null, 2]);
  expect(found([])).toEqual([null, null, null]);
});
