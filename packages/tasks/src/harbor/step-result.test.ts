import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { belowMinReward, verdictOf } from "./step-result.ts";
import { parseTaskFile } from "./task-file.ts";

const file = (strategy: "mean" | "final", ...names: string[]) =>
  parseTaskFile(
    `multi_step_reward_strategy = "${strategy}"\n${names.map((name) => `[[steps]]\nname = "${name}"\n`).join("")}`,
    "t",
  ).file;
const step = (name: string, rewards: Record<string, number>, flags: string[] = []) => ({ name, rewards, flags });
const choice = { rewardKey: "reward", successReward: 1 };

describe("steps", () => {
  test("mean: over all steps, a missing key is 0, parts add up", () => {
    const verdict = verdictOf(
      file("mean", "a", "b"),
      [step("a", { reward: 1 }), step("b", { other: 1 })],
      false,
      choice,
    );
    expect(verdict).toMatchObject({ reward: 0.5, success: false, parts: { a: 0.5, b: 0 } });
  });
  test("steps that the agent never reached count as 0; those that a gate kept from it don't count", () => {
    const first = [step("a", { reward: 1 })];
    expect(verdictOf(file("mean", "a", "b"), first, false, choice)).toMatchObject({ reward: 0.5, success: false });
    expect(verdictOf(file("mean", "a", "b"), first, true, choice)).toMatchObject({ reward: 1, success: false });
    expect(verdictOf(file("final", "a", "b"), first, false, choice)).toMatchObject({ reward: 0, parts: { b: 0 } });
    expect(verdictOf(file("final", "a", "b"), first, true, choice)).toMatchObject({ reward: 1, parts: { a: 1 } });
  });
  test("final: the last step's alone", () => {
    const graded = [step("a", { reward: 0 }, ["x"]), step("b", { reward: 1 }, ["x", "y"])];
    expect(verdictOf(file("final", "a", "b"), graded, false, choice)).toMatchObject({
      reward: 1,
      success: true,
      flags: ["x", "y"],
    });
  });
  test("no step that wrote the key, or no step at all, is an error", () => {
    expect(() => verdictOf(file("mean", "a"), [step("a", { other: 1 })], false, choice)).toThrow(/wrote no reward/);
    expect(() => verdictOf(file("mean", "a"), [], false, choice)).toThrow(/no step was graded/);
  });
  test("a mean of ones succeeds, however many they are", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), (count) => {
        const names = Array.from({ length: count }, (_, at) => `s${at}`);
        const verdict = verdictOf(
          file("mean", ...names),
          names.map((name) => step(name, { reward: 1 })),
          false,
          choice,
        );
        expect(verdict.success).toBe(true);
        expect(verdict.reward).toBeCloseTo(1, 9);
      }),
      { numRuns: 20 },
    );
  });
  test("a gate asks each of its keys; one that is missing is below it", () => {
    expect(belowMinReward({ reward: 0.5 }, null)).toBeNull();
    expect(belowMinReward({ reward: 0.5 }, { reward: 0.5 })).toBeNull();
    expect(belowMinReward({ reward: 0.4 }, { reward: 0.5 })).toMatch(/reward 0.4/);
    expect(belowMinReward({ reward: 1 }, { speed: 0 })).toMatch(/no speed/);
    expect(belowMinReward({ reward: 1 }, { toString: 0 })).toMatch(/no toString/);
  });
});
