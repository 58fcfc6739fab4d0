import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { meanEstimate, pairedBootstrap, passAtK, passEstimate } from "./evaluation-statistics.ts";

const choose = (n: number, k: number): number => (k === 0 ? 1 : k > n ? 0 : (choose(n - 1, k - 1) * n) / k);

describe("pass@k", () => {
  test("is the share of k-subsets with a success", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        (n, successes, k) => {
          const c = Math.min(successes, n);
          const expected = k > n ? null : 1 - choose(n - c, k) / choose(n, k);
          const got = passAtK(n, c, k);
          if (expected === null) expect(got).toBeNull();
          else expect(got).toBeCloseTo(expected, 12);
        },
      ),
    );
  });
  test("stays exact where binomials overflow", () => {
    expect(passAtK(256, 1, 1)).toBeCloseTo(1 / 256, 12);
    expect(passAtK(256, 1, 256)).toBe(1);
    expect(passAtK(256, 0, 128)).toBe(0);
  });
  test("leaves out instances with fewer than k scored rollouts", () => {
    const scores = (successes: boolean[]) => ({ successes, rewards: successes.map(Number) });
    const instances = [scores([true, false]), scores([false, false]), scores([true])];
    expect(passEstimate(instances, 1)).toMatchObject({ value: 0.5, instances: 3 });
    expect(passEstimate(instances, 2)).toMatchObject({ value: 0.5, instances: 2 });
    expect(passEstimate(instances, 3)).toBeNull();
  });
});

describe("mean with its interval", () => {
  test("is Student's, over instances", () => {
    // 1, 2, 3, 4: s = 1.290994, t(3) = 3.182446
    const estimate = meanEstimate([1, 2, 3, 4]);
    expect(estimate?.value).toBe(2.5);
    expect(estimate?.halfWidth).toBeCloseTo((3.182446 * 1.290994) / 2, 4);
    expect(meanEstimate(Array.from({ length: 101 }, (_, i) => i % 2))?.halfWidth).toBeCloseTo(0.0992, 3);
  });
  test("says nothing it can't know", () => {
    expect(meanEstimate([])).toBeNull();
    expect(meanEstimate([0.5])).toEqual({ value: 0.5, halfWidth: null, instances: 1 });
    // No spread in the sample is no proof that there is none.
    expect(meanEstimate([1, 1, 1])).toEqual({ value: 1, halfWidth: null, instances: 3 });
  });
});

describe("paired bootstrap", () => {
  const options = { seed: 7, resamples: 2000 };
  test("finds a difference that every pair shares, and none between equal runs", () => {
    const better = pairedBootstrap(
      [...Array(20)].map((_, i) => [i / 20 + 0.1, i / 20] as const),
      options,
    );
    expect(better?.difference).toBeCloseTo(0.1, 12);
    expect(better?.low).toBeCloseTo(0.1, 12);
    expect(better?.pValue).toBe(0);
    const same = pairedBootstrap(
      [...Array(20)].map((_, i) => [i, i] as const),
      options,
    );
    expect(same).toEqual({ difference: 0, low: 0, high: 0, pValue: 1, pairs: 20 });
  });
  test("is the same for the same seed, changes sign when the runs change places, and needs two pairs", () => {
    const pair = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(fc.array(pair, { minLength: 2, maxLength: 30 }), (pairs) => {
        const one = pairedBootstrap(pairs, { seed: 3, resamples: 200 });
        expect(pairedBootstrap(pairs, { seed: 3, resamples: 200 })).toEqual(one);
        const turned = pairedBootstrap(
          pairs.map(([a, b]) => [b, a] as const),
          { seed: 3, resamples: 200 },
        );
        expect(turned?.difference).toBeCloseTo(-(one?.difference ?? 0), 12);
        expect(one !== null && one.low <= one.high).toBe(true);
      }),
      { numRuns: 50 },
    );
    expect(pairedBootstrap([[1, 0]], options)).toBeNull();
  });
  test("covers the true difference about as often as it says", () => {
    let covered = 0;
    const trials = 200;
    for (let trial = 0; trial < trials; trial++) {
      const noise = (i: number) => Math.sin(trial * 12.9898 + i * 78.233) * 43758.5453;
      const pairs = [...Array(40)].map((_, i) => [0.3 + (noise(i) - Math.floor(noise(i))), 0.5] as const);
      const found = pairedBootstrap(pairs, { seed: trial, resamples: 400 });
      if (found && found.low <= 0.3 && found.high >= 0.3) covered++;
    }
    expect(covered / trials).toBeGreaterThan(0.88);
    expect(covered / trials).toBeLessThan(0.99);
  });
});
