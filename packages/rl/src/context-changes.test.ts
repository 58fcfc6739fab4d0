/** Agents that change their own context: what of such a trajectory is trained, once each, and with which weight. */
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { TokenRange, TurnNote, TurnRecord } from "@rolldeck/contracts/segments";
import { describe, expect, it } from "vitest";
import { buildTrajectory, segment, turnRecord } from "../testing/build-trajectory.ts";
import { buildUpdate, type UpdateRollout } from "./build-update.ts";
import { decodeMask, rowMask, trainedTokens } from "./mask-reasons.ts";
import { packTrajectory } from "./pack-trajectory.ts";
import { allTokens, positionsOf, type TrajectoryTokens } from "./trajectory-tokens.ts";

const range = (start: number, end: number): TokenRange => ({ start, end });
const sampled = (index: number, tokens: readonly number[]) =>
  segment(
    index,
    "sampled",
    tokens,
    tokens.map(() => -0.5),
  );
const rowsOf = (trajectory: TrajectoryTokens) => {
  const tokens = allTokens(trajectory.segments);
  return packTrajectory(trajectory).rows.map((row) => ({
    turns: row.turns,
    tokens: [...positionsOf(row.ranges)].map((position) => tokens[position]),
    mask: rowMask(row, trajectory, null),
  }));
};

/** A memory agent: the opening [1 2], then restarts that share 1 with it; each restart is followed by one turn. */
function restarting(restarts: number): TrajectoryTokens {
  const segments = [segment(0, "template", [1, 2]), sampled(1, [10, 11])];
  const turns = [turnRecord(0, 1, [range(0, 2)], { sampledTokens: 2 })];
  for (let nth = 1; nth <= restarts; nth++) {
    const at = 4 + (nth - 1) * 4;
    segments.push(segment(nth * 2, "template", [100 + nth, 101 + nth]), sampled(nth * 2 + 1, [20 + nth, 30 + nth]));
    turns.push(turnRecord(nth, nth * 2 + 1, [range(0, 1), range(at, at + 2)], { sampledTokens: 2 }));
  }
  return { segments, turns };
}

describe("rows of agents that change their context", () => {
  it("are one more than the restarts", () => {
    const rows = rowsOf(restarting(3));
    expect(rows.map(({ tokens }) => tokens)).toEqual([
      [1, 2, 10, 11],
      [1, 101, 102, 21, 31],
      [1, 102, 103, 22, 32],
      [1, 103, 104, 23, 33],
    ]);
    expect(rows[1]?.mask).toEqual(["template", "template", "template", null, null]);
  });

  it("hold dropped observations as what the policy saw in their place, and train each sample once", () => {
    // [1 2] says [10], saw [5 6 7], says [11], saw [8]; then [5 6 7] gives way to the placeholder [9], says [12].
    const trajectory: TrajectoryTokens = {
      segments: [
        segment(0, "template", [1, 2]),
        sampled(1, [10]),
        segment(2, "observation", [5, 6, 7]),
        sampled(3, [11]),
        segment(4, "observation", [8]),
        segment(5, "observation", [9]),
        sampled(6, [12]),
      ],
      turns: [
        turnRecord(0, 1, [range(0, 2)]),
        turnRecord(1, 3, [range(0, 6)]),
        turnRecord(2, 6, [range(0, 3), range(8, 9), range(6, 8)]),
      ],
    };
    const rows = rowsOf(trajectory);
    expect(rows.map(({ tokens }) => tokens)).toEqual([
      [1, 2, 10, 5, 6, 7, 11],
      [1, 2, 10, 9, 11, 8, 12],
    ]);
    expect(rows[1]?.mask).toEqual([
      "template",
      "template",
      "other-row",
      "observation",
      "other-row",
      "observation",
      null,
    ]);
  });

  it("give a sub-agent a row of its own, and its parent's goes on after it", () => {
    const trajectory: TrajectoryTokens = {
      segments: [
        segment(0, "template", [1, 2]),
        sampled(1, [10]),
        segment(2, "template", [3, 4]),
        sampled(3, [20]),
        segment(4, "observation", [5]),
        sampled(5, [11]),
      ],
      turns: [
        turnRecord(0, 1, [range(0, 2)], { nextRanges: [range(0, 3), range(6, 7)] }),
        turnRecord(1, 3, [range(3, 5)], { thread: "0.0" }),
        turnRecord(2, 5, [range(0, 3), range(6, 7)]),
      ],
    };
    expect(rowsOf(trajectory).map(({ tokens, turns }) => [turns, tokens])).toEqual([
      [
        [0, 2],
        [1, 2, 10, 5, 11],
      ],
      [[1], [3, 4, 20]],
    ]);
  });
});

describe("advantages of agents that change their context", () => {
  const { algorithm } = RunConfig.parse({ taskSets: [{ name: "x" }], algorithm: { filterZeroVariance: false } });
  const rollout = (rolloutId: string, reward: number, restarts: number): UpdateRollout => ({
    rolloutId,
    attempt: 1,
    ending: "finish_tool",
    reward,
    trajectory: restarting(restarts),
  });
  const update = (rollouts: readonly UpdateRollout[], change: Partial<typeof algorithm> = {}) =>
    buildUpdate({
      groups: [{ groupId: "g", rollouts }],
      algorithm: { ...algorithm, ...change },
      maxContextTokens: 100,
    });
  const weights =
    (rows: readonly { rolloutId: string; advantage: number; scale: number; mask: readonly number[] }[]) =>
    (rolloutId: string) =>
      rows.filter((row) => row.rolloutId === rolloutId);

  it("are the trajectory's on all its rows, and its reward enters the group once however long it is", () => {
    const { rows } = update([rollout("long", 1, 9), rollout("short", 0, 0), rollout("other", 0, 1)]);
    const of = weights(rows);
    expect(of("long")).toHaveLength(10);
    // Leave one out: 1 − (0 + 0) / 2, and 0 − (1 + 0) / 2 for the others, as if each had one row.
    expect(new Set(of("long").map(({ advantage }) => advantage))).toEqual(new Set([1]));
    expect(of("short").map(({ advantage }) => advantage)).toEqual([-0.5]);
    expect(new Set(of("other").map(({ advantage }) => advantage))).toEqual(new Set([-0.5]));
  });

  it.each(["sequence-mean", "constant", "token-mean"] as const)(
    "weigh a trajectory's tokens as if it were one row (%s)",
    (normalisation) => {
      const { rows } = update([rollout("long", 1, 3), rollout("short", 0, 0)], { normalisation });
      const of = weights(rows);
      const scales = (rolloutId: string) => new Set(of(rolloutId).map(({ scale }) => scale));
      expect(scales("long").size).toBe(1);
      const [long = 0] = scales("long");
      const [short = 0] = scales("short");
      const tokens = (rolloutId: string) => of(rolloutId).reduce((sum, row) => sum + trainedTokens(row.mask), 0);
      expect(tokens("long")).toBe(8);
      // Mean per sequence: eight tokens weigh as much as two; the other ways count tokens.
      if (normalisation === "sequence-mean") expect(long * tokens("long")).toBeCloseTo(short * tokens("short"));
      else expect(long).toBe(short);
    },
  );
});

describe("turns that are kept and not trained", () => {
  const two = (overrides: Partial<TurnRecord>, last: Partial<TurnRecord> = {}) => {
    const trajectory = buildTrajectory([
      { prompt: [1], sampled: [10, 11] },
      { prompt: [1, 10, 11, 2], sampled: [12] },
    ]);
    const [first, second] = trajectory.turns;
    const turns = [{ ...first, ...overrides } as TurnRecord, { ...second, ...last } as TurnRecord];
    const [row] = packTrajectory({ ...trajectory, turns }).rows;
    return row === undefined ? [] : rowMask(row, { ...trajectory, turns }, null);
  };
  const note = (kind: TurnNote["kind"]): TurnNote => ({ kind, message: "x" });

  it("were cut and told so (fault 9)", () => {
    expect(two({ stopReason: "length", parseError: "cut" })).toEqual([
      "template",
      "turn-cut",
      "turn-cut",
      "observation",
      null,
    ]);
  });
  it("but the cut that ended the rollout follows the ending", () => {
    expect(two({}, { stopReason: "length" })).toEqual(["template", null, null, "observation", null]);
  });
  it.each(["usage", "drift"] as const)("were contradicted by the server: %s (fault 18)", (kind) => {
    expect(two({ notes: [note(kind)] })[1]).toBe("incomplete-sample");
  });
  it.each(["repair", "coercion", "calls"] as const)("a note of kind %s alone changes nothing", (kind) => {
    expect(two({ notes: [note(kind)] })[1]).toBeNull();
  });
  it("held no usable call", () => {
    expect(two({ parseError: "no call" })[1]).toBe("parse-retry");
  });
  it("keep their reasons through storage", () => {
    const reasons = ["turn-cut", "incomplete-sample", null] as const;
    expect(decodeMask([2, 12, 1, 13, 1, -1])).toEqual([reasons[0], reasons[0], reasons[1], reasons[2]]);
  });
});
