/** The small search task through the real turn loop, tools, dialect and quickstart tokenizer. */
import { demonstrationRows } from "@rolldeck/agent/core/demonstrations";
import { dialects } from "@rolldeck/agent/core/registry";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { presets } from "@rolldeck/contracts/presets";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { beforeAll, describe, expect, test } from "vitest";
import { type Played, playRollout, quickstartTokenizer, toolSpecsOf } from "../../../testing/play-rollout.ts";
import { searchSmallDemonstrations } from "./demonstrations.ts";
import { askedChain } from "./instances.ts";
import { searchSmall } from "./task.ts";

const { agent } = RunConfig.parse(presets.search.config);
let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await quickstartTokenizer();
});

const play = (task: Task, index: number, policy: (prompt: string) => string): Promise<Played> =>
  playRollout({ task, split: "evaluate", index, agent, tokenizer, policy });

/** Looks for what stands behind the last thing looked for, and answers once that is a code. */
function follows(prompt: string): string {
  const asked = [...prompt.matchAll(/query="(\w+)"/g)].at(-1)?.[1];
  const name = /find (\w+)/.exec(prompt)?.[1] ?? "";
  const found = asked === undefined ? name : new RegExp(`${asked}: (\\w)`).exec(prompt)?.[1];
  return /^\d/.test(found ?? "") ? `[finish(answer="${found}")]` : `[local_search(query="${found ?? "?"}")]`;
}

describe("a rollout of the small search", () => {
  test("whoever searches for what the first search found is right after three turns, inside the preset's limits", async () => {
    for (let index = 0; index < 40; index++) {
      const { end, success, tokens, longestSample } = await play(searchSmall, index, follows);
      expect(end).toMatchObject({
        ending: "finish_tool",
        turns: 3,
        finalAnswer: askedChain("evaluate", index).chain.code,
      });
      expect(success).toBe(true);
      expect(tokens).toBeLessThanOrEqual(agent.maxContextTokens / 2);
      expect(longestSample).toBeLessThanOrEqual(agent.sampling.maxTokensPerTurn);
    }
  });

  test("whoever stops early is wrong; so is whoever has no tool", async () => {
    const early = await play(searchSmall, 0, (prompt) =>
      prompt.includes("query=") ? `[finish(answer="${askedChain("evaluate", 0).chain.place}")]` : follows(prompt),
    );
    expect(early).toMatchObject({ success: false, end: { ending: "finish_tool", turns: 2 } });
    const off = await searchSmall.open?.({ dataset: null, options: { toolOff: true } });
    if (off === undefined) throw new Error("not opened");
    expect((await play(off, 0, follows)).success).toBe(false);
  });
});

test("a demonstration's tokens are a rollout's: format, results and specials as loop and tool make them", () => {
  const complete = searchSmallDemonstrations(3, 15).find(({ turns }) => turns.length === 3);
  if (!complete) throw new Error("no demonstration");
  const rows = demonstrationRows(complete, {
    tokenizer,
    dialect: dialects.pythonic,
    tools: toolSpecsOf(searchSmall),
    agent,
  });
  expect(rows).toHaveLength(1);
  const [first, second, last] = complete.turns;
  const text = (call: string, output: string | undefined): string =>
    `<|assistant|>${call}<|end|>${output === undefined ? "" : `<|tool|>${output}<|end|>`}`;
  const query = (turn: typeof first): string => `[local_search(query="${turn?.calls[0]?.arguments.query}")]`;
  expect(tokenizer.decode(rows[0]?.tokens ?? [], { skipSpecial: false })).toBe(
    `<|user|>${complete.messages[0]?.content}<|end|>${text(query(first), first?.outputs[0])}${text(query(second), second?.outputs[0])}${text(`[finish(answer="${last?.calls[0]?.arguments.answer}")]`, undefined)}`,
  );
});
