/** Vectors C and D: losses and KL in float64, sums, reductions and gradients. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lossScales } from "./denominators.ts";
import { klTerm } from "./kl.ts";
import { type ClipBounds, type LossName, type LossRow, sequenceLoss, tokenLosses } from "./losses.ts";
import { sequenceRatio } from "./off-policy.ts";

const rows = [
  { newLogprobs: [-0.5, -1, -0.2], oldLogprobs: [-0.9, -1, -0.1], mask: [1, 1, 1] },
  { newLogprobs: [-0.7, -1.5, 0], oldLogprobs: [-1.2, -1.1, 0], mask: [1, 1, 0] },
] as const;
const clip: ClipBounds = { low: 0.8, high: 1.28, dual: null };
const names = Object.keys(tokenLosses) as LossName[];

const rowLoss = (name: LossName, row: number, scale = 1, bounds = clip) => {
  const advantage = (row === 0 ? 1 : -0.5) * scale;
  const { newLogprobs, oldLogprobs, mask } = rows[row] ?? rows[0];
  return sequenceLoss(name, { newLogprobs, oldLogprobs, mask, advantages: mask.map(() => advantage) }, bounds);
};
const sumWith = (name: LossName, scales: readonly number[]) =>
  rowLoss(name, 0, scales[0]).sum + rowLoss(name, 1, scales[1]).sum;
const sequences = [
  { trainedTokens: 3, group: 0 },
  { trainedTokens: 2, group: 0 },
];
/** One trained token. */
const token = (name: LossName, newLogprob: number, old: number, advantage: number, bounds = clip) => {
  const row = { newLogprobs: [newLogprob], oldLogprobs: [old], mask: [1], advantages: [advantage] };
  const { sum, gradients } = sequenceLoss(name, row, bounds);
  return { value: sum, gradient: gradients[0] ?? Number.NaN };
};

describe("losses", () => {
  it.each([
    ["importance_sampling", -2.237141, -0.447428, -0.27623, -0.279643],
    ["ppo", -1.960477, -0.392095, -0.224716, -0.24506],
    ["cispo", 0.772967, 0.154593, 0.041495, 0.096621],
  ] as const)("%s: sum, token-mean, sequence-mean, constant (vector C)", (name, sum, perToken, sequence, constant) => {
    expect(sumWith(name, [1, 1])).toBeCloseTo(sum, 5);
    expect(sumWith(name, lossScales(sequences, "token-mean", 4))).toBeCloseTo(perToken, 5);
    expect(sumWith(name, lossScales(sequences, "sequence-mean", 4))).toBeCloseTo(sequence, 5);
    expect(sumWith(name, lossScales(sequences, "constant", 4))).toBeCloseTo(constant, 5);
  });

  it.each([
    ["importance_sampling", [-1.491825, -1, -0.904837], [0.824361, 0.33516, 0]],
    ["ppo", [0, -1, -0.904837], [0.824361, 0, 0]],
    ["cispo", [-1.28, -1, -0.904837], [0.64, 0.4, 0]],
    // The rows' ratios are 1.105171 and 1.051271: neither is clipped.
    ["gspo", [-1.105171, -1.105171, -1.105171], [0.525635, 0.525635, 0]],
  ] as const)("%s: gradients (vector C)", (name, first, second) => {
    for (const [row, gradients] of [first, second].entries()) {
      for (const [t, value] of gradients.entries()) expect(rowLoss(name, row).gradients[t]).toBeCloseTo(value, 5);
    }
  });

  it("clips a whole row by GSPO's ratio", () => {
    const narrow = { low: 0.95, high: 1.05, dual: null };
    expect(rowLoss("gspo", 0, 1, narrow)).toMatchObject({ gradients: [0, 0, 0] });
    expect(rowLoss("gspo", 0, 1, narrow).sum).toBeCloseTo(-3 * 1.05, 9);
    // A negative advantage is never clipped from above.
    expect(rowLoss("gspo", 1, 1, narrow).gradients[0]).toBeCloseTo(0.525635, 5);
  });

  it.each(["importance_sampling", "ppo", "cross_entropy"] as const)("%s: the gradient is the slope", (name) => {
    const bounds = { ...clip, dual: 3 };
    for (const [lp, old, advantage] of [
      [-0.5, -0.6, 1],
      [-0.5, -0.6, -1],
      [-0.1, -2, -1],
      [-2, -0.1, 1],
      [-2, -0.1, -1],
    ] as const) {
      const at = (x: number) => token(name, x, old, advantage, bounds).value;
      const slope = (at(lp + 1e-6) - at(lp - 1e-6)) / 2e-6;
      expect(token(name, lp, old, advantage, bounds).gradient).toBeCloseTo(slope, 4);
    }
  });

  it("bounds a negative advantage by the dual clip: 2.0 → 1.5", () => {
    const four = Math.log(4);
    expect(token("ppo", four, 0, -0.5).value).toBeCloseTo(2, 6);
    expect(token("ppo", four, 0, -0.5, { ...clip, dual: 3 })).toEqual({ value: 1.5, gradient: 0 });
    expect(token("ppo", four, 0, 0.5, { ...clip, dual: 3 }).value).toBeCloseTo(-0.64, 6);
  });

  it("gives the constant reduction through per-datum averages too: A·T_i/L", () => {
    const perDatum = [3, 2].map((trained, row) => rowLoss("ppo", row, trained / 4).sum / trained);
    expect(((perDatum[0] ?? 0) + (perDatum[1] ?? 0)) / 2).toBeCloseTo(-0.24506, 5);
  });

  it("leaves masked positions out even when they hold NaN", () => {
    const row = { newLogprobs: [-0.5, Number.NaN], oldLogprobs: [-0.5, Number.NaN], mask: [1, 0] };
    for (const name of ["ppo", "gspo", "importance_sampling"] as const) {
      const loss = sequenceLoss(name, { ...row, advantages: [1, Number.NaN] }, clip);
      expect(loss).toEqual({ sum: -1, values: [-1, 0], gradients: [-1, 0] });
    }
  });

  it("stays finite for logprobs that are far apart, and does not push them further", () => {
    for (const name of names.filter((each) => each !== "cross_entropy" && each !== "cispo")) {
      for (const [newer, old] of [
        [0, -1e4],
        [-1e4, 0],
      ] as const) {
        const { value, gradient } = token(name, newer, old, -1);
        expect(Number.isFinite(value)).toBe(true);
        if (name !== "gspo") expect(Math.abs(gradient)).toBe(0);
      }
    }
  });

  it("gives the same sum in any order of rows, and for a batch in parts", () => {
    const entry = fc.record({
      newLogprob: fc.double({ min: -30, max: 0, noNaN: true }),
      old: fc.double({ min: -30, max: 0, noNaN: true }),
      kept: fc.constantFrom(0, 1),
      advantage: fc.double({ min: -3, max: 3, noNaN: true }),
    });
    const row = fc.array(entry, { maxLength: 6 }).map(
      (entries): LossRow => ({
        newLogprobs: entries.map((each) => each.newLogprob),
        oldLogprobs: entries.map((each) => each.old),
        mask: entries.map((each) => each.kept),
        advantages: entries.map((each) => each.advantage),
      }),
    );
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), fc.constantFrom(...names), (batch, name) => {
        const bounds = { ...clip, dual: 3 };
        const losses = batch.map((each) => sequenceLoss(name, each, bounds));
        const sum = losses.reduce((total, { sum: own }) => total + own, 0);
        const backwards = [...losses].reverse().reduce((total, { sum: own }) => total + own, 0);
        expect(Math.abs(sum - backwards)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(sum)));
        for (const { gradients, values } of losses) {
          expect([...gradients, ...values].every(Number.isFinite)).toBe(true);
        }
      }),
    );
  });

  it("gives the sequence ratios of GSPO", () => {
    const ratio = (row: 0 | 1) => sequenceRatio(rows[row].newLogprobs, rows[row].oldLogprobs, rows[row].mask).geometric;
    expect(ratio(0)).toBeCloseTo(1.105171, 5);
    expect(ratio(1)).toBeCloseTo(1.051271, 5);
  });
});

describe("prompt-mean", () => {
  it("averages over prompts, each by its own tokens", () => {
    const batch = [
      { trainedTokens: 3, group: 0 },
      { trainedTokens: 1, group: 0 },
      { trainedTokens: 8, group: 1 },
      { trainedTokens: 0, group: 2 },
    ];
    expect(lossScales(batch, "prompt-mean", 100)).toEqual([1 / 12, 1 / 12, 1 / 24, 0]);
  });
});

describe("KL estimators", () => {
  it("gives vector D", () => {
    const terms = (["k1", "k2", "k3"] as const).map((name) => [klTerm(-0.5, -0.6, name), klTerm(-1, -0.8, name)]);
    const expected = [
      [0.1, -0.2],
      [0.005, 0.02],
      [0.004837, 0.021403],
    ];
    for (const [i, { value }] of terms.flat().entries()) expect(value).toBeCloseTo(expected.flat()[i] ?? Number.NaN, 5);
  });
  it.each(["k1", "k2", "k3"] as const)("%s: the gradient is the slope, and 0 where the gap is clamped", (name) => {
    for (const lp of [-0.2, -1, -3.5]) {
      const slope = (klTerm(lp + 1e-6, -1.2, name).value - klTerm(lp - 1e-6, -1.2, name).value) / 2e-6;
      expect(klTerm(lp, -1.2, name).gradient).toBeCloseTo(slope, 5);
    }
    expect(klTerm(-1e4, 0, name).gradient).toBe(0);
    expect(Number.isFinite(klTerm(-1e4, 0, name).value)).toBe(true);
  });
});
