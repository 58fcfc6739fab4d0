import type { FinishedRollout, Split } from "@rolldeck/contracts/ports/task";
import { findTool } from "@rolldeck/tools/registry";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { smallDemonstrations, unknown } from "./demonstrations.ts";
import { defaultOptions, SmallState, smallState, splitOf } from "./instances.ts";
import { memorySmall } from "./task.ts";

const split = fc.constantFrom<Split>("train", "evaluate");
const index = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const open = (options: Record<string, number | boolean> = {}) => memorySmall.open?.({ dataset: null, options });
const rollout = (finalAnswer: string | null): FinishedRollout => ({
  ending: "finish_tool",
  finalAnswer,
  turns: 4,
  toolCalls: [],
});
const scene = { signal: new AbortController().signal, judge: null };

describe("instances", () => {
  test("the key asked for comes once, with the only digit, in a part that is neither first nor last", () => {
    fc.assert(
      fc.property(split, index, (s, i) => {
        const { question, chunks, answers, part } = SmallState.parse(memorySmall.instance(s, i).state);
        const pairs = chunks.flatMap((chunk) => chunk.match(/../g) ?? []);
        expect(pairs.filter((pair) => pair.startsWith(question))).toHaveLength(1);
        expect(pairs.filter((pair) => /\d/.test(pair))).toEqual([question + answers[0]]);
        expect(chunks[part]).toContain(question + answers[0]);
        expect(part).toBeGreaterThan(0);
        expect(part).toBeLessThan(chunks.length - 1);
        expect(chunks.length).toBeGreaterThanOrEqual(defaultOptions.minParts);
        expect(chunks.length).toBeLessThanOrEqual(defaultOptions.maxParts);
      }),
    );
  });

  test("are the same whenever they are made, and a text belongs to one split alone", () => {
    fc.assert(
      fc.property(split, index, (s, i) => {
        expect(memorySmall.instance(s, i)).toEqual(memorySmall.instance(s, i));
        expect(splitOf(smallState(s, i, defaultOptions))).toBe(s);
      }),
    );
    // Fixed for good: a stored run's instances must not change under it.
    expect(smallState("train", 0, defaultOptions)).toMatchInlineSnapshot(`
      {
        "answers": [
          "6",
        ],
        "chunks": [
          "AnmMvFJFVcwRTnwojwCxoahYXlOYrRrA",
          "GyR6xzHCzdujyfOuJPOibnFZjlaiWcVG",
          "OnVZUVyhyjbQutznQFHKLctLKscDCzNo",
          "yuKEwyPwtAbNqIexMaZECSdoyXVFHKIH",
          "yzEizhvZVRerHKIxcjlPqpmFBGwYOmFX",
        ],
        "part": 1,
        "question": "R",
        "style": "short",
      }
    `);
  });

  test("every digit is asked for as often, so that guessing pays 10 %", () => {
    const digits = Array.from({ length: 5000 }, (_, i) => smallState("evaluate", i, defaultOptions).answers[0]);
    for (let digit = 0; digit <= 9; digit++) {
      expect(Math.abs(digits.filter((each) => each === String(digit)).length / 5000 - 0.1)).toBeLessThan(0.02);
    }
  });

  test("options: up to 2,048 characters in parts of 256, and refusals that name the option", async () => {
    const task = await open({ minParts: 8, maxParts: 8, pairs: 128 });
    const { chunks } = SmallState.parse(task?.instance("train", 1).state);
    expect(chunks.map((chunk) => chunk.length)).toEqual(Array(8).fill(256));
    await expect(open({ minParts: 5, maxParts: 4 })).rejects.toMatchObject({ issues: [{ path: "options.maxParts" }] });
    await expect(open({ pairs: 129 })).rejects.toMatchObject({ issues: [{ path: "options.pairs" }] });
    await expect(open({ parts: 4 })).rejects.toMatchObject({ issues: [{ path: "options.parts" }] });
    await expect(memorySmall.open?.({ dataset: "/x", options: {} })).rejects.toMatchObject({
      issues: [{ path: "dataset" }],
    });
    expect(() => memorySmall.instance("train", -1)).toThrow(RangeError);
  });

  test("with the tool off nothing but the first part is ever shown, and the digit is not in it", async () => {
    const off = await open({ toolOff: true });
    fc.assert(
      fc.property(split, index, (s, i) => {
        const on = SmallState.parse(memorySmall.instance(s, i).state);
        const state = SmallState.parse(off?.instance(s, i).state);
        expect(state).toEqual({ ...on, chunks: on.chunks.map((chunk, part) => (part === 0 ? chunk : "")) });
        expect(state.chunks.join("")).not.toMatch(/\d/);
      }),
    );
  });
});

describe("demonstrations", () => {
  const demonstrations = smallDemonstrations(3, 400);
  const memoriesOf = ({ turns }: (typeof demonstrations)[number]) =>
    turns.map(({ calls }) => String(Object.values(calls[0]?.arguments ?? {})[0]));

  test("are the same for a seed; the first of a longer list are the shorter one", () => {
    expect(smallDemonstrations(3, 20)).toEqual(demonstrations.slice(0, 20));
    expect(smallDemonstrations(4, 20)).not.toEqual(demonstrations.slice(0, 20));
  });

  test("each context is what the tool itself would show after that call", async () => {
    for (const { messages, turns } of demonstrations.slice(0, 40)) {
      const seed = /q (.)\nm \nt (.*)/.exec(messages[0]?.content ?? "");
      expect(seed).not.toBeNull();
      const shown = turns.slice(0, -1).map(({ restart }) => restart?.[0]?.content ?? "");
      const chunks = [seed?.[2] ?? "", ...shown.slice(0, -1).map((text) => /\nt (.*)$/.exec(text)?.[1] ?? "")];
      const calls: { name: string; arguments: Record<string, string>; failed: boolean }[] = [];
      for (const [at, { calls: made }] of turns.slice(0, -1).entries()) {
        const agent = { turn: at, maxTurns: 9, contextTokens: 0, maxContextTokens: 256, calls };
        const outcome = await findTool("next_with_summary")?.call(made[0]?.arguments ?? {}, {
          instance: { question: seed?.[1] ?? "", chunks, style: "short" },
          agent,
          signal: scene.signal,
          deadlineMs: 1000,
        });
        expect(outcome?.context).toEqual({ kind: "restart", messages: turns[at]?.restart });
        calls.push({ name: "next_with_summary", arguments: {}, failed: false });
      }
    }
  });

  test("never make a digit up, and leave most of the way to learn", () => {
    let right = 0;
    for (const demonstration of demonstrations) {
      const texts = [demonstration.messages, ...demonstration.turns.map(({ restart }) => restart ?? [])];
      const memories = memoriesOf(demonstration);
      memories.forEach((memory, turn) => {
        if (memory !== unknown) expect(texts[turn]?.[0]?.content).toContain(memory);
      });
      if (memories.at(-1) !== unknown) right += 1;
    }
    expect(right / demonstrations.length).toBeGreaterThan(0.1);
    expect(right / demonstrations.length).toBeLessThan(0.4);
  });
});

test("the digit alone is right; nothing else is", async () => {
  const instance = memorySmall.instance("train", 0);
  const [digit] = SmallState.parse(instance.state).answers;
  expect(await memorySmall.verify(instance, rollout(` ${digit}\n`), scene)).toMatchObject({ reward: 1, success: true });
  for (const wrong of [null, "", unknown, `${digit}${digit}`, String((Number(digit) + 1) % 10)]) {
    expect(await memorySmall.verify(instance, rollout(wrong), scene)).toMatchObject({ reward: 0, success: false });
  }
  await expect(memorySmall.verify({ ...instance, state: {} }, rollout("1"), scene)).rejects.toMatchObject({
    boundary: "verifier",
  });
});
