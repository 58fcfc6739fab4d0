import { describe, expect, it } from "vitest";
import { buildTrajectory } from "../testing/build-trajectory.ts";
import { encodeMask, rowMask } from "./mask-reasons.ts";
import { packTrajectory } from "./pack-trajectory.ts";
import { type DatumRow, toDatum } from "./to-datum.ts";
import type { TrajectoryTokens } from "./trajectory-tokens.ts";

const rowsOf = (trajectory: TrajectoryTokens, advantage: number, scale = 1): DatumRow[] =>
  packTrajectory(trajectory).rows.map((row) => ({
    ranges: row.ranges,
    mask: encodeMask(rowMask(row, trajectory, null)),
    advantage,
    scale,
  }));
const datums = (trajectory: TrajectoryTokens, advantage: number, scale = 1) =>
  rowsOf(trajectory, advantage, scale).map((row) => toDatum(row, trajectory));

describe("toDatum", () => {
  it("merges two turns into one datum (vector F)", () => {
    const trajectory = buildTrajectory([
      { prompt: [1, 2, 3], sampled: [10, 11], logprobs: [-0.1, -0.2] },
      { prompt: [1, 2, 3, 10, 11, 4, 5], sampled: [12], logprobs: [-0.3] },
    ]);
    expect(datums(trajectory, 0.5)).toEqual([
      {
        inputs: [1, 2, 3, 10, 11, 4, 5],
        targets: [2, 3, 10, 11, 4, 5, 12],
        weights: [0, 0, 1, 1, 0, 0, 1],
        logprobs: [0, 0, -0.1, -0.2, 0, 0, -0.3],
        advantages: [0, 0, 0.5, 0.5, 0, 0, 0.5],
        scale: 1,
      },
    ]);
  });

  it("aligns everything with the targets (fault 21)", () => {
    const trajectory = buildTrajectory([{ prompt: [1, 2, 3], sampled: [10, 11], logprobs: [-0.1, -0.2] }]);
    expect(datums(trajectory, 0.5)).toEqual([
      {
        inputs: [1, 2, 3, 10],
        targets: [2, 3, 10, 11],
        weights: [0, 0, 1, 1],
        logprobs: [0, 0, -0.1, -0.2],
        advantages: [0, 0, 0.5, 0.5],
        scale: 1,
      },
    ]);
    expect(datums(buildTrajectory([{ prompt: [1], sampled: [2], logprobs: [-1] }]), 2, 0.25)[0]).toEqual({
      inputs: [1],
      targets: [2],
      weights: [1],
      logprobs: [-1],
      advantages: [0.5],
      scale: 0.25,
    });
  });

  it("fault 26: gives every row of a rollout its advantage at its own positions", () => {
    const trajectory = buildTrajectory([
      { prompt: [1, 2], sampled: [3, 4, 5, 6, 7] },
      { prompt: [9], sampled: [3, 4] },
    ]);
    const counts = datums(trajectory, 0.5).map(({ advantages }) => advantages.filter((value) => value === 0.5).length);
    expect(counts).toEqual([5, 2]);
  });

  it("fault 26: fails loudly when a row does not fit its trajectory", () => {
    const trajectory = buildTrajectory([{ prompt: [1, 2], sampled: [3], logprobs: [-1] }]);
    const row: DatumRow = { ranges: [{ start: 0, end: 3 }], mask: [2, 0, 1, -1], advantage: 1, scale: 1 };
    expect(toDatum(row, trajectory).weights).toEqual([0, 1]);
    for (const [broken, message] of [
      [{ mask: [2, 0] }, /mask covers 2 tokens/],
      [{ mask: [1, 0, 2, -1] }, /no sampling logprob/],
      [{ mask: [3, -1] }, /first token/],
      [{ ranges: [{ start: 0, end: 4 }] }, /leaves a trajectory/],
      [{ advantage: Number.NaN }, /not finite/],
      [{ scale: Number.POSITIVE_INFINITY }, /not finite/],
      [{ advantage: 1e-300, scale: 1e-300 }, null],
    ] as const) {
      const call = () => toDatum({ ...row, ...broken }, trajectory);
      if (message === null) expect(call).not.toThrow();
      else expect(call).toThrow(message);
    }
    const lost = { ...trajectory, segments: trajectory.segments.map((part) => ({ ...part, logprobs: null })) };
    expect(() => toDatum(row, lost)).toThrow(/no sampling logprob/);
  });

  it("takes what was learnt of the row later: weights, other logprobs to compare with, a reference", () => {
    const trajectory = buildTrajectory([{ prompt: [1, 2], sampled: [3, 4], logprobs: [-0.1, -0.2] }]);
    const [row] = rowsOf(trajectory, 2, 0.5);
    if (row === undefined) throw new Error("no row");
    const later = {
      tokenWeights: [0, 0, 2, 0.25],
      oldLogprobs: [null, null, -0.5, -0.6],
      refLogprobs: [null, -9, -0.7, -0.8],
    };
    expect(toDatum({ ...row, ...later }, trajectory)).toEqual({
      inputs: [1, 2, 3],
      targets: [2, 3, 4],
      weights: [0, 1, 1],
      logprobs: [0, -0.5, -0.6],
      advantages: [0, 2, 0.25],
      scale: 0.5,
      refLogprobs: [0, -0.7, -0.8],
    });
    expect(() => toDatum({ ...row, refLogprobs: [null, -9, null, -1] }, trajectory)).toThrow(/no reference logprob/);
  });
});
