import type { FinishedRollout, Split } from "@rolldeck/contracts/ports/task";
import { findTool } from "@rolldeck/tools/registry";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyChainDemonstrations } from "./demonstrations.ts";
import { chainOf, type KeyChainState, keyChainState, maxLookups, minLookups, splitOf } from "./instances.ts";
import { keyChain } from "./task.ts";
import { verifyKeyChain } from "./verify.ts";

const split = fc.constantFrom<Split>("train", "evaluate");
const index = fc.integer({ min: 0, max: 2 ** 31 - 1 });

const rollout = (finalAnswer: string | null, gets: number): FinishedRollout => ({
  ending: "finish_tool",
  finalAnswer,
  turns: gets + 1,
  toolCalls: [
    ...Array.from({ length: gets }, () => ({ name: "get", arguments: { k: "a" }, failed: false })),
    { name: "finish", arguments: {}, failed: false },
  ],
});

const freshAgent = { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] };

/** Follows the table from `start` with the tool itself. */
async function follow(state: KeyChainState): Promise<string[]> {
  const seen = [state.start];
  while (/^[a-z]$/.test(seen.at(-1) ?? "") && seen.length < 40) {
    const outcome = await findTool("get")?.call(
      { k: seen.at(-1) ?? "" },
      { instance: { ...state }, agent: freshAgent, signal: new AbortController().signal, deadlineMs: 1000 },
    );
    seen.push(outcome?.output ?? "");
  }
  return seen;
}

describe("instances", () => {
  test("are the same whenever and wherever they are made", () => {
    fc.assert(
      fc.property(split, index, (s, i) => {
        expect(keyChain.instance(s, i)).toEqual(keyChain.instance(s, i));
      }),
    );
    // Fixed for good: a stored run's instances must not change under it.
    expect(keyChainState("train", 0)).toMatchInlineSnapshot(`
      {
        "answer": "1",
        "lookups": 4,
        "start": "z",
        "table": {
          "g": "p",
          "h": "x",
          "i": "y",
          "n": "g",
          "p": "1",
          "t": "8",
          "u": "t",
          "x": "u",
          "y": "9",
          "z": "n",
        },
      }
    `);
    expect(chainOf(keyChainState("evaluate", 0))).toMatchInlineSnapshot(`"lm5"`);
  });

  test("every chain ends in its digit after 2 to 4 lookups, and every chain of the table ends without a cycle", async () => {
    await fc.assert(
      fc.asyncProperty(split, index, async (s, i) => {
        const state = keyChainState(s, i);
        const seen = await follow(state);
        expect(seen.length - 1).toBe(state.lookups);
        expect(seen.length - 1).toBeGreaterThanOrEqual(minLookups);
        expect(seen.length - 1).toBeLessThanOrEqual(maxLookups);
        expect(seen.at(-1)).toBe(state.answer);
        expect(new Set(seen).size).toBe(seen.length);
        for (const key of Object.keys(state.table)) {
          const end = (await follow({ ...state, start: key })).at(-1);
          expect(end).toMatch(/^[0-9]$/);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("no value of the table but the chain's own points into the chain", () => {
    fc.assert(
      fc.property(split, index, (s, i) => {
        const state = keyChainState(s, i);
        const chain = chainOf(state);
        const into = Object.entries(state.table).filter(([, value]) => /[a-z]/.test(value) && chain.includes(value));
        expect(into.map(([key]) => key).every((key) => chain.includes(key))).toBe(true);
        expect(Object.keys(state.table).length).toBeGreaterThan(state.lookups + 3);
      }),
    );
  });

  test("the splits are disjoint: a chain is asked for by its own split alone", () => {
    fc.assert(
      fc.property(split, index, (s, i) => {
        expect(splitOf(chainOf(keyChainState(s, i)))).toBe(s);
      }),
    );
    const train = new Set(Array.from({ length: 2000 }, (_, i) => chainOf(keyChainState("train", i))));
    const evaluate = Array.from({ length: 2000 }, (_, i) => chainOf(keyChainState("evaluate", i)));
    expect(evaluate.filter((chain) => train.has(chain))).toEqual([]);
  });

  test("answers and lengths are spread evenly, so that guessing pays 10 %", () => {
    const states = Array.from({ length: 5000 }, (_, i) => keyChainState("train", i));
    const share = (holds: (state: KeyChainState) => boolean): number => states.filter(holds).length / states.length;
    for (let digit = 0; digit <= 9; digit++) {
      expect(Math.abs(share((state) => state.answer === String(digit)) - 0.1)).toBeLessThan(0.02);
    }
    for (let lookups = minLookups; lookups <= maxLookups; lookups++) {
      expect(Math.abs(share((state) => state.lookups === lookups) - 1 / 3)).toBeLessThan(0.03);
    }
  });

  test("have no end and no negative index", () => {
    expect(keyChain.size()).toBeNull();
    expect(keyChain.instance("train", 2 ** 31 - 1).instanceId).toBe("train-2147483647");
    expect(() => keyChain.instance("train", -1)).toThrow(RangeError);
    expect(() => keyChain.instance("train", 0.5)).toThrow(RangeError);
  });

  test("the model is told the first key and nothing else", () => {
    const instance = keyChain.instance("train", 3);
    expect(keyChain.messages(instance)).toEqual([{ role: "user", content: `find ${keyChainState("train", 3).start}` }]);
  });
});

describe("verifier", () => {
  const instance = keyChain.instance("train", 0);
  const { answer, lookups } = keyChainState("train", 0);

  test("the right answer with no detour earns 1", async () => {
    expect(await verifyKeyChain(instance, rollout(answer, lookups))).toEqual({
      reward: 1,
      success: true,
      parts: { answer: 1, "extra lookups": 0 },
      notes: null,
    });
    expect((await verifyKeyChain(instance, rollout(` ${answer}\n`, lookups))).success).toBe(true);
  });

  test("a lookup beyond those needed costs 0.02; fewer earn nothing extra", async () => {
    expect((await verifyKeyChain(instance, rollout(answer, lookups + 3))).reward).toBeCloseTo(0.94, 12);
    expect((await verifyKeyChain(instance, rollout(answer, 0))).reward).toBe(1);
  });

  test("a wrong answer or none is no success, and its detours still cost", async () => {
    const wrong = answer === "0" ? "1" : "0";
    for (const given of [wrong, null, "", `${answer}${answer}`, "constructor"]) {
      const verdict = await verifyKeyChain(instance, rollout(given, lookups + 1));
      expect(verdict.success).toBe(false);
      expect(verdict.reward).toBeCloseTo(-0.02, 12);
      expect(verdict.notes).toContain(answer);
    }
  });

  test("rewards are finite and are the sum of their parts", async () => {
    await fc.assert(
      fc.asyncProperty(index, fc.option(fc.string()), fc.integer({ min: 0, max: 60 }), async (i, given, gets) => {
        const verdict = await verifyKeyChain(keyChain.instance("train", i), rollout(given, gets));
        const sum = Object.values(verdict.parts).reduce<number>((total, part) => total + Number(part), 0);
        expect(verdict.reward).toBe(sum);
        expect(Number.isFinite(verdict.reward)).toBe(true);
      }),
    );
  });

  test("grading that can't be done is an error, never a 0", async () => {
    await expect(verifyKeyChain({ ...instance, state: {} }, rollout("1", 1))).rejects.toMatchObject({
      boundary: "verifier",
    });
  });
});

describe("demonstrations", () => {
  test("are the same for a seed, others for another, and a longer list starts with the shorter", () => {
    expect(keyChainDemonstrations(7, 50)).toEqual(keyChainDemonstrations(7, 50));
    expect(keyChainDemonstrations(7, 50)).not.toEqual(keyChainDemonstrations(8, 50));
    expect(keyChainDemonstrations(7, 50).slice(0, 20)).toEqual(keyChainDemonstrations(7, 20));
  });

  test("a fifth reaches the digit; the rest answer the last key they saw, never a made-up digit", () => {
    const demonstrations = keyChainDemonstrations(1, 400);
    const answers = demonstrations.map((each) => String(each.turns.at(-1)?.calls[0]?.arguments.answer));
    expect(answers.filter((answer) => /^[0-9]$/.test(answer))).toHaveLength(80);
    for (const [at, { turns, messages }] of demonstrations.entries()) {
      const outputs = turns.flatMap((turn) => turn.outputs);
      expect(answers[at]).toBe(outputs.at(-1));
      expect(turns.slice(0, -1).every((turn) => turn.calls[0]?.name === "get" && turn.outputs.length === 1)).toBe(true);
      expect(turns[0]?.calls[0]?.arguments.k).toBe(messages[0]?.content.slice(-1));
      for (let turn = 1; turn < turns.length - 1; turn++) {
        expect(turns[turn]?.calls[0]?.arguments.k).toBe(outputs[turn - 1]);
      }
    }
  });
});
