/** REINFORCE++ and batch normalisation, and what every estimator keeps. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AdvantageSettings, batchAdvantages, type RewardGroup } from "./batch-advantages.ts";
import { groupAdvantages } from "./group-advantages.ts";

const settings = (advantage: AdvantageSettings["advantage"], batchNormalise = false): AdvantageSettings => ({
  advantage,
  batchNormalise,
});
const estimators = ["rloo", "grpo", "dr-grpo", "maxrl", "reinforce++"] as const;

describe("batchAdvantages", () => {
  it("whitens rewards by tokens for reinforce++", () => {
    // Tokens carry 1, 1, 1, 0: mean 0.75, variance with ddof 1 0.25.
    const groups = [{ rewards: [1, 0], sampledTokens: [3, 1] }];
    const [own] = batchAdvantages(groups, settings("reinforce++"));
    expect(own?.[0]).toBeCloseTo(0.5, 6);
    expect(own?.[1]).toBeCloseTo(-1.5, 6);
  });

  it("teaches from a group without spread where the batch has one (reinforce++)", () => {
    const groups = [
      { rewards: [1, 1], sampledTokens: [2, 2] },
      { rewards: [0], sampledTokens: [4] },
    ];
    const found = batchAdvantages(groups, settings("reinforce++"));
    expect(found[0]?.[0]).toBeCloseTo(0.935414, 5);
    expect(found[1]?.[0]).toBeCloseTo(-0.935414, 5);
    expect(batchAdvantages(groups, settings("rloo"))).toEqual([[0, 0], [0]]);
  });

  it("with dr-grpo and batch normalisation is REINFORCE++ with a group baseline", () => {
    const groups = [
      { rewards: [1, 0], sampledTokens: [1, 1] },
      { rewards: [4, 0], sampledTokens: [1, 1] },
    ];
    // 0.5, −0.5, 2, −2: mean 0, variance 8.5 / 3.
    const root = Math.sqrt(8.5 / 3 + 1e-8);
    const expected = [0.5 / root, -0.5 / root, 2 / root, -2 / root];
    for (const [i, value] of batchAdvantages(groups, settings("dr-grpo", true)).flat().entries()) {
      expect(value).toBeCloseTo(expected[i] ?? Number.NaN, 12);
    }
  });

  it("says nothing where nothing differs or nothing was sampled", () => {
    for (const advantage of estimators) {
      for (const batchNormalise of [false, true]) {
        const flat = [{ rewards: [1, 1, null], sampledTokens: [5, 2, 9] }];
        expect(batchAdvantages(flat, settings(advantage, batchNormalise))).toEqual([[0, 0, null]]);
        const silent = [{ rewards: [1], sampledTokens: [0] }];
        expect(batchAdvantages(silent, settings(advantage, batchNormalise))).toEqual([[0]]);
        expect(batchAdvantages([], settings(advantage, batchNormalise))).toEqual([]);
      }
    }
  });

  it("stops at numbers that are too large to mean anything, and names the group", () => {
    const groups = [
      { rewards: [1, 0], sampledTokens: [1, 1] },
      { rewards: [1.7e308, -1.7e308], sampledTokens: [1, 1] },
    ];
    for (const advantage of estimators) expect(() => batchAdvantages(groups, settings(advantage))).toThrow(/group 1/);
  });

  const reward = fc.oneof(
    fc.constantFrom(null, Number.NaN, Number.POSITIVE_INFINITY),
    fc.double({ min: -100, max: 100, noNaN: true }),
  );
  const group = fc.array(fc.record({ reward, tokens: fc.nat(500) }), { minLength: 1, maxLength: 6 }).map((members) => ({
    rewards: members.map((member) => member.reward),
    sampledTokens: members.map((member) => member.tokens),
  }));
  const chosen = fc.record({ advantage: fc.constantFrom(...estimators), batchNormalise: fc.boolean() });

  it("is finite where scored, null elsewhere, and does not care about the order of groups", () => {
    fc.assert(
      fc.property(fc.array(group, { maxLength: 5 }), chosen, (groups, wanted) => {
        const found = batchAdvantages(groups, wanted);
        for (const [g, own] of found.entries()) {
          for (const [i, value] of own.entries()) {
            const scored = Number.isFinite(groups[g]?.rewards[i] ?? Number.NaN);
            expect(value !== null && Number.isFinite(value)).toBe(scored);
          }
        }
        const backwards = batchAdvantages([...groups].reverse(), wanted).reverse();
        for (const [i, value] of found.flat().entries()) {
          expect(value ?? 0).toBeCloseTo(backwards.flat()[i] ?? 0, 6);
        }
      }),
    );
  });

  it("does not let a long rollout count more often in its group's statistics", () => {
    fc.assert(
      fc.property(group, fc.constantFrom(...estimators.slice(0, 4)), (one: RewardGroup, advantage) => {
        const longer = { ...one, sampledTokens: one.sampledTokens.map((tokens, i) => tokens * (i + 2) + 1) };
        const alike = (each: RewardGroup) => batchAdvantages([each], settings(advantage))[0];
        expect(alike(longer)).toEqual(alike(one));
      }),
    );
  });

  it("never ranks a worse rollout above a better one of its group", () => {
    fc.assert(
      fc.property(fc.array(group, { maxLength: 4 }), chosen, (groups, wanted) => {
        const found = batchAdvantages(groups, wanted);
        for (const [g, { rewards }] of groups.entries()) {
          for (const [a, first] of rewards.entries()) {
            for (const [b, second] of rewards.entries()) {
              const [one, two] = [found[g]?.[a] ?? null, found[g]?.[b] ?? null];
              if (one === null || two === null) continue;
              if ((first ?? 0) > (second ?? 0)) expect(one).toBeGreaterThanOrEqual(two);
            }
          }
        }
      }),
    );
  });
});

describe("maxrl", () => {
  it("divides by the mean", () => {
    const [first, second] = groupAdvantages([1, 0, 0, 0], "maxrl");
    expect(first).toBeCloseTo(0.75 / (0.25 + 1e-6), 9);
    expect(second).toBeCloseTo(-0.25 / (0.25 + 1e-6), 9);
    expect(groupAdvantages([0, 0], "maxrl")).toEqual([0, 0]);
    // Below 0 the better one stays the better one.
    expect(groupAdvantages([-1, -3], "maxrl")[0]).toBeCloseTo(0.5, 5);
  });
});
