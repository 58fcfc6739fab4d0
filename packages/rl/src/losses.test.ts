/** Vectors C and D: losses and KL in float64, sums, reductions and gradients. */
import { describe, expect, it } from "vitest";
import { lossScales } from "./denominators.ts";
import { klTerm } from "./kl.ts";
import { type ClipBounds, sequenceLoss, type TokenLossName, tokenLosses } from "./losses.ts";
import { sequenceRatio } from "./off-policy.ts";

const newer = [
  [-0.5, -1, -0.2],
  [-0.7, -1.5, 0],
];
const older = [
  [-0.9, -1, -0.1],
  [-1.2, -1.1, 0],
];
const masks = [
  [1, 1, 1],
  [1, 1, 0],
];
const clip: ClipBounds = { low: 0.8, high: 1.28, dual: null };
const none: number[] = [];

const sumWith = (name: TokenLossName, scales: readonly number[], bounds = clip) =>
  [1, -0.5].reduce((sum, advantage, row) => {
    const advantages = [0, 1, 2].map(() => advantage * (scales[row] ?? 0));
    return sum + sequenceLoss(name, newer[row] ?? none, older[row] ?? none, masks[row] ?? none, advantages, bounds).sum;
  }, 0);
const sequences = [{ trainedTokens: 3 }, { trainedTokens: 2 }];

describe("token losses", () => {
  it.each([
    ["importance_sampling", -2.237141, -0.447428, -0.27623, -0.279643],
    ["ppo", -1.960477, -0.392095, -0.224716, -0.24506],
    ["cispo", 0.772967, 0.154593, 0.041495, 0.096621],
  ] as const)("%s: sum, token-mean, sequence-mean, constant (vector C)", (name, sum, token, sequence, constant) => {
    expect(sumWith(name, [1, 1])).toBeCloseTo(sum, 5);
    expect(sumWith(name, lossScales(sequences, "token-mean", 4))).toBeCloseTo(token, 5);
    expect(sumWith(name, lossScales(sequences, "sequence-mean", 4))).toBeCloseTo(sequence, 5);
    expect(sumWith(name, lossScales(sequences, "constant", 4))).toBeCloseTo(constant, 5);
  });

  it.each([
    ["importance_sampling", [-1.491825, -1, -0.904837], [0.824361, 0.33516, 0]],
    ["ppo", [0, -1, -0.904837], [0.824361, 0, 0]],
    ["cispo", [-1.28, -1, -0.904837], [0.64, 0.4, 0]],
  ] as const)("%s: gradients (vector C)", (name, first, second) => {
    [first, second].forEach((expected, row) => {
      const advantage = row === 0 ? 1 : -0.5;
      const advantages = [advantage, advantage, advantage];
      const { gradients } = sequenceLoss(
        name,
        newer[row] ?? none,
        older[row] ?? none,
        masks[row] ?? none,
        advantages,
        clip,
      );
      expected.forEach((value, t) => {
        expect(gradients[t]).toBeCloseTo(value, 5);
      });
    });
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
      const at = (x: number) => tokenLosses[name](x, old, advantage, bounds).value;
      const slope = (at(lp + 1e-6) - at(lp - 1e-6)) / 2e-6;
      expect(tokenLosses[name](lp, old, advantage, bounds).gradient).toBeCloseTo(slope, 4);
    }
  });

  it("bounds a negative advantage by the dual clip: 2.0 → 1.5", () => {
    const four = Math.log(4);
    expect(tokenLosses.ppo(four, 0, -0.5, clip).value).toBeCloseTo(2, 6);
    expect(tokenLosses.ppo(four, 0, -0.5, { ...clip, dual: 3 })).toEqual({ value: 1.5, gradient: 0 });
    expect(tokenLosses.ppo(four, 0, 0.5, { ...clip, dual: 3 }).value).toBeCloseTo(-0.64, 6);
  });

  it("gives the constant reduction through per-datum averages too: A·T_i/L", () => {
    const perDatum = [0, 1].map((row) => {
      const trained = row === 0 ? 3 : 2;
      const advantage = ((row === 0 ? 1 : -0.5) * trained) / 4;
      const advantages = [advantage, advantage, advantage];
      const loss = sequenceLoss("ppo", newer[row] ?? none, older[row] ?? none, masks[row] ?? none, advantages, clip);
      return loss.sum / trained;
    });
    expect(((perDatum[0] ?? 0) + (perDatum[1] ?? 0)) / 2).toBeCloseTo(-0.24506, 5);
  });

  it("leaves masked positions out even when they hold NaN", () => {
    const loss = sequenceLoss("ppo", [-0.5, Number.NaN], [-0.5, Number.NaN], [1, 0], [1, Number.NaN], clip);
    expect(loss).toEqual({ sum: -1, gradients: [-1, 0] });
  });

  it("gives the sequence ratios of GSPO", () => {
    expect(sequenceRatio(newer[0] ?? none, older[0] ?? none, masks[0] ?? none).geometric).toBeCloseTo(1.105171, 5);
    expect(sequenceRatio(newer[1] ?? none, older[1] ?? none, masks[1] ?? none).geometric).toBeCloseTo(1.051271, 5);
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
    terms.flat().forEach((value, i) => {
      expect(value).toBeCloseTo(expected.flat()[i] ?? Number.NaN, 5);
    });
  });
  it("stays finite for logprobs that are far apart", () => {
    expect(Number.isFinite(klTerm(-1e4, 0, "k3"))).toBe(true);
  });
});
