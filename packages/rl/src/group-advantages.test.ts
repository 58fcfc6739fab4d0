import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type GroupAdvantageName, groupAdvantages, isZeroVariance } from "./group-advantages.ts";
import { readReward } from "./read-reward.ts";

const close = (actual: readonly (number | null)[], expected: readonly (number | null)[]) => {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => {
    if (value === null) expect(actual[i]).toBeNull();
    else expect(Math.abs((actual[i] ?? Number.NaN) - value)).toBeLessThan(1e-5);
  });
};
const names: GroupAdvantageName[] = ["dr-grpo", "grpo", "rloo", "maxrl"];

describe("groupAdvantages", () => {
  it("gives vector A", () => {
    const rewards = [1, 0.5, 0, 0];
    close(groupAdvantages(rewards, "dr-grpo"), [0.625, 0.125, -0.375, -0.375]);
    close(groupAdvantages(rewards, "grpo"), [1.30558, 0.261116, -0.783348, -0.783348]);
    close(groupAdvantages(rewards, "rloo"), [0.833333, 0.166667, -0.5, -0.5]);
    close(groupAdvantages([1, 0, 0, 1], "grpo"), [0.866024, -0.866024, -0.866024, 0.866024]);
    close(groupAdvantages([1, 0, 0, 1], "rloo"), [0.666667, -0.666667, -0.666667, 0.666667]);
  });

  it.each(names)("%s gives exact zeros without spread, also for one rollout", (name) => {
    expect(groupAdvantages([0.1, 0.1, 0.1], name)).toEqual([0, 0, 0]);
    expect(groupAdvantages([7], name)).toEqual([0]);
    expect(groupAdvantages([1, 1 + 1e-7], name)).toEqual([0, 0]);
    expect(groupAdvantages([], name)).toEqual([]);
  });

  it("keeps a masked rollout's reward in the mean (vector B)", () => {
    close(groupAdvantages([1, 0, 0, 0], "rloo"), [1, -0.333333, -0.333333, -0.333333]);
    close(groupAdvantages([1, 0, 0], "rloo"), [1, -0.5, -0.5]);
  });

  it("fault 22: leaves missing rewards out of the statistics", () => {
    close(groupAdvantages([1, null, 0, Number.NaN], "dr-grpo"), [0.5, null, -0.5, null]);
    close(groupAdvantages([1, null, 0, Number.NaN], "rloo"), [1, null, -1, null]);
    expect(groupAdvantages([null, null], "grpo")).toEqual([null, null]);
    expect(groupAdvantages([Number.POSITIVE_INFINITY, 1], "grpo")).toEqual([null, 0]);
    expect(isZeroVariance([null, Number.NaN])).toBe(false);
    expect(isZeroVariance([null, 3])).toBe(true);
  });

  it("fault 27: counts only what was scored", () => {
    expect(groupAdvantages([-1, -1, null, null], "rloo")).toEqual([0, 0, null, null]);
  });

  it("never gives NaN or infinity, and sums to zero", () => {
    const reward = fc.oneof(
      fc.constantFrom(null, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
      fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.array(reward, { maxLength: 20 }), fc.constantFrom(...names), (rewards, name) => {
        const advantages = groupAdvantages(rewards, name);
        advantages.forEach((advantage, i) => {
          expect(advantage === null).toBe(!Number.isFinite(rewards[i] ?? Number.NaN));
          if (advantage !== null) expect(Number.isFinite(advantage)).toBe(true);
        });
        const scored = advantages.filter((advantage) => advantage !== null);
        const size = scored.reduce((sum, advantage) => sum + Math.abs(advantage), 0);
        expect(Math.abs(scored.reduce((sum, advantage) => sum + advantage, 0))).toBeLessThanOrEqual(1e-9 * (1 + size));
      }),
    );
  });
});

describe("readReward", () => {
  it("turns booleans into numbers and keeps missing apart from 0", () => {
    expect([true, false, 0.25, null, undefined, Number.NaN].map((value) => readReward(value, "t"))).toEqual([
      1,
      0,
      0.25,
      null,
      null,
      null,
    ]);
  });
  it.each([["1"], [Number.POSITIVE_INFINITY], [{}], [10n]])("refuses %s and names the task", (value) => {
    expect(() => readReward(value, "key-chain")).toThrow(/key-chain/);
  });
});
