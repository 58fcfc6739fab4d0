/** Vectors E, G and H. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AdamState, adamwStep, clipGlobalNorm } from "./adamw.ts";
import { microBatches } from "./micro-batches.ts";
import { defaultSequenceBounds, keepsSequence, sequenceRatio, tisWeights } from "./off-policy.ts";

describe("off-policy corrections (vector E)", () => {
  const first = [
    [-0.5, -1, -0.3],
    [-1.5, -1, -0.32],
    [1, 1, 1],
  ] as const;
  const second = [
    [-0.7, -1.5, Number.NaN],
    [-0.7, -1.48, Number.NaN],
    [1, 1, 0],
  ] as const;

  it("caps the weights and never touches masked positions", () => {
    tisWeights(...first).forEach((weight, t) => {
      expect(weight).toBeCloseTo([2, 1, 1.020201][t] ?? Number.NaN, 5);
    });
    tisWeights(...second).forEach((weight, t) => {
      expect(weight).toBeCloseTo([1, 0.980199, 0][t] ?? Number.NaN, 5);
    });
  });

  it("masks the first sequence and keeps the second by both masks", () => {
    const ratios = [sequenceRatio(...first), sequenceRatio(...second)] as const;
    expect(ratios[0].product).toBeCloseTo(2.773195, 5);
    expect(ratios[1].product).toBeCloseTo(0.980199, 5);
    expect(ratios[0].geometric).toBeCloseTo(1.404948, 5);
    expect(ratios[1].geometric).toBeCloseTo(0.99005, 5);
    for (const kind of ["product", "geometric"] as const) {
      const bounds = { [kind]: defaultSequenceBounds[kind] };
      expect(ratios.map((ratio) => keepsSequence(ratio, bounds))).toEqual([false, true]);
    }
  });

  it("drops a sequence with one token ratio outside the bounds", () => {
    const ratio = sequenceRatio([-0.1, -12], [-0.1, -0.1], [1, 1]);
    expect(keepsSequence(ratio, { token: defaultSequenceBounds.token })).toBe(false);
    expect(keepsSequence(sequenceRatio([], [], []), defaultSequenceBounds)).toBe(true);
  });
});

describe("AdamW (vector G)", () => {
  it.each([
    [0, 0.9, 0.873163],
    [0.01, 0.899, 0.871264],
  ])("decay %f", (weightDecay, one, two) => {
    const adam = { learningRate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay, gradClipNorm: 0 };
    const start: AdamState = { step: 0, weight: 1, first: 0, second: 0 };
    const afterOne = adamwStep(start, 0.5, adam);
    expect(afterOne.weight).toBeCloseTo(one, 5);
    expect(adamwStep(afterOne, -0.25, adam).weight).toBeCloseTo(two, 5);
  });
  it("clips the global norm and refuses one that is not finite", () => {
    const clipped = clipGlobalNorm([3, 4], 1);
    expect(clipped?.norm).toBe(5);
    expect(clipped?.gradients[0]).toBeCloseTo(0.6, 12);
    expect(clipped?.gradients[1]).toBeCloseTo(0.8, 12);
    expect(clipGlobalNorm([3, 4], 0)?.gradients).toEqual([3, 4]);
    expect(clipGlobalNorm([Number.NaN, 1], 1)).toBeNull();
  });
});

describe("micro-batches", () => {
  it("gives vector H", () => {
    expect(microBatches([5, 3, 4, 2], 8)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
  it("holds every row once, within the budget unless one row alone exceeds it", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 60 }), fc.integer({ min: 1, max: 60 }), (lengths, budget) => {
        const batches = microBatches(lengths, budget);
        expect(batches.flat().sort((a, b) => a - b)).toEqual(lengths.map((_, row) => row));
        for (const batch of batches) {
          const tokens = batch.reduce((sum, row) => sum + (lengths[row] ?? 0), 0);
          expect(tokens <= budget || batch.length === 1).toBe(true);
        }
      }),
    );
  });
});
