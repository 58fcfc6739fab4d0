import { OffPolicyConfig } from "@rolldeck/contracts/algorithm-config";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { correctRows, type UncorrectedRow } from "./correct-rows.ts";
import type { TokenMask } from "./mask-reasons.ts";

const settings = (overrides: Partial<OffPolicyConfig>): OffPolicyConfig => ({
  ...OffPolicyConfig.parse({}),
  ...overrides,
});
/** Vector E's rows, each behind a token of context. */
const first: UncorrectedRow = {
  rolloutId: "a",
  mask: ["template", null, null, null],
  logprobs: [null, -1.5, -1, -0.32],
  trainerLogprobs: [null, -0.5, -1, -0.3],
  versions: [null, 4, 5, 6],
};
const second: UncorrectedRow = {
  rolloutId: "b",
  mask: ["template", null, null, "observation"],
  logprobs: [null, -0.7, -1.48, null],
  trainerLogprobs: [null, -0.7, -1.5, -3],
  versions: [null, 6, 6, null],
};
const masksOf = (offPolicy: Partial<OffPolicyConfig>, rows: readonly UncorrectedRow[] = [first, second]) =>
  correctRows(rows, settings(offPolicy), 6).map(({ mask }) => mask.filter((reason) => reason === "off-policy").length);
const weightsOf = (offPolicy: Partial<OffPolicyConfig>) =>
  correctRows([first, second], settings(offPolicy), 6).map(({ weights }) => weights);
const closeTo = (actual: readonly number[] | undefined, expected: readonly number[]) => {
  expect(actual?.length).toBe(expected.length);
  for (const [t, value] of expected.entries()) expect(actual?.[t]).toBeCloseTo(value, 5);
};

describe("correctRows", () => {
  it("leaves rows as they are when nothing is asked for", () => {
    expect(correctRows([first, second], settings({}), 6)).toEqual([
      { mask: first.mask, weights: [0, 1, 1, 1] },
      { mask: second.mask, weights: [0, 1, 1, 0] },
    ]);
  });

  it("weighs tokens and sequences (vector E)", () => {
    const [a, b] = weightsOf({ weight: "token" });
    closeTo(a, [0, 2, 1, 1.020201]);
    closeTo(b, [0, 1, 0.980199, 0]);
    const [wholeA, wholeB] = weightsOf({ weight: "sequence" });
    closeTo(wholeA, [0, 2, 2, 2]);
    closeTo(wholeB, [0, 0.980199, 0.980199, 0]);
  });

  it.each([
    { sequenceMask: "product" },
    { sequenceMask: "geometric" },
    { sequenceMask: "geometric", sequenceLow: 0.9, sequenceHigh: 1.3 },
    { outlierHigh: 2 },
  ] as const)("leaves out the first rollout whole: %o (vector E)", (offPolicy) => {
    expect(masksOf(offPolicy)).toEqual([3, 0]);
  });

  it("keeps it under bounds of its own", () => {
    expect(masksOf({ sequenceMask: "product", sequenceHigh: 3 })).toEqual([0, 0]);
    expect(masksOf({ sequenceMask: "geometric", sequenceHigh: 1.5 })).toEqual([0, 0]);
  });

  it("leaves out single tokens, and judges the sequence by the rest", () => {
    expect(masksOf({ tokenHigh: 2 })).toEqual([1, 0]);
    expect(masksOf({ tokenHigh: 2, sequenceMask: "product" })).toEqual([1, 0]);
    expect(masksOf({ tokenLow: 0.99 })).toEqual([0, 1]);
  });

  it("weighs a token less for each version that it is behind", () => {
    const [a, b] = weightsOf({ stalenessDecay: 0.5 });
    closeTo(a, [0, 0.25, 0.5, 1]);
    closeTo(b, [0, 1, 1, 0]);
  });

  it("gives a rollout one fate over all of its rows", () => {
    const other = { ...second, rolloutId: "a" };
    expect(masksOf({ outlierHigh: 2 }, [first, other])).toEqual([3, 2]);
    expect(masksOf({ sequenceMask: "product" }, [other, first])).toEqual([2, 3]);
  });

  it("does not guess: a trained token without a finite logprob stops it", () => {
    const holed = { ...first, trainerLogprobs: [null, -0.5, Number.NaN, -0.3] };
    expect(() => correctRows([holed], settings({ weight: "token" }), 6)).toThrow(/rollout a/);
  });

  it("only ever leaves out, with finite weights, and does not care about the order of rows", () => {
    const token = fc.record({
      reason: fc.constantFrom<TokenMask>(null, null, "observation"),
      sampler: fc.double({ min: -60, max: 0, noNaN: true }),
      trainer: fc.double({ min: -60, max: 0, noNaN: true }),
      version: fc.nat(6),
    });
    const row = fc.record({ rolloutId: fc.constantFrom("a", "b"), tokens: fc.array(token, { maxLength: 6 }) }).map(
      ({ rolloutId, tokens }): UncorrectedRow => ({
        rolloutId,
        mask: tokens.map(({ reason }) => reason),
        logprobs: tokens.map(({ sampler }) => sampler),
        trainerLogprobs: tokens.map(({ trainer }) => trainer),
        versions: tokens.map(({ version }) => version),
      }),
    );
    const offPolicy = fc.record({
      weight: fc.constantFrom("none", "token", "sequence"),
      sequenceMask: fc.constantFrom("none", "product", "geometric"),
      outlierHigh: fc.constantFrom(null, 100),
      tokenLow: fc.constantFrom(null, 0.5),
      stalenessDecay: fc.constantFrom(1, 0.9),
    } as const);
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), offPolicy, (rows, chosen) => {
        const wanted = settings(chosen);
        const found = correctRows(rows, wanted, 5);
        const backwards = correctRows([...rows].reverse(), wanted, 5).reverse();
        for (const [i, { mask, weights }] of found.entries()) {
          expect(mask).toEqual(backwards[i]?.mask);
          for (const [t, reason] of mask.entries()) {
            const before = rows[i]?.mask[t] ?? null;
            expect(reason === before || (before === null && reason === "off-policy")).toBe(true);
            expect(reason === null ? (weights[t] ?? 0) > 0 && Number.isFinite(weights[t]) : weights[t] === 0).toBe(
              true,
            );
          }
        }
      }),
    );
  });
});
