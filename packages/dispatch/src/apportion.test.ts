import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { apportion, apportionRound } from "./apportion.ts";

const someWeights = fc.array(fc.double({ min: 0.01, max: 100, noNaN: true }), { minLength: 1, maxLength: 6 });

describe("apportion", () => {
  test("gives whole quotas and the largest remainders", () => {
    expect(apportion(10, [1, 1, 1], [null, null, null])).toEqual([4, 3, 3]);
    expect(apportion(7, [0.5, 0.3, 0.2], [null, null, null])).toEqual([4, 2, 1]);
    expect(apportion(0, [1], [null])).toEqual([0]);
  });

  test("adds up, and no cap is passed", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 50 }),
        someWeights,
        fc.array(fc.option(fc.nat({ max: 9 })), { minLength: 6, maxLength: 6 }),
        (total, weights, someCaps) => {
          const caps = weights.map((_, at) => someCaps[at] ?? null);
          const counts = apportion(total, weights, caps);
          const room = caps.reduce<number>((sum, cap) => sum + (cap ?? Number.POSITIVE_INFINITY), 0);
          expect(counts.reduce((a, b) => a + b, 0)).toBe(Math.min(total, room));
          for (const [at, cap] of caps.entries())
            expect(counts[at]).toBeLessThanOrEqual(cap ?? Number.POSITIVE_INFINITY);
        },
      ),
    );
  });
});

describe("apportionRound", () => {
  test("every round adds up, carries its remainders on, and stays near the quota", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), someWeights, (perRound, weights) => {
        const sum = weights.reduce((a, b) => a + b, 0);
        let before = weights.map(() => 0);
        for (let round = 1; round <= 30; round++) {
          const next = apportionRound(perRound, weights, round);
          expect(next.before).toEqual(before);
          expect(next.counts.reduce((a, b) => a + b, 0)).toBe(perRound);
          before = before.map((count, at) => count + (next.counts[at] ?? 0));
          for (const [at, weight] of weights.entries()) {
            expect(Math.abs((before[at] ?? 0) - (round * perRound * weight) / sum)).toBeLessThan(weights.length);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
