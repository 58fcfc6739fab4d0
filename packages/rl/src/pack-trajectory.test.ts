import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildTrajectory, segment, turnRecord } from "../testing/build-trajectory.ts";
import { decodeMask, encodeMask, rowMask, type TokenMask } from "./mask-reasons.ts";
import { packTrajectory } from "./pack-trajectory.ts";
import { allTokens, positionsOf, type TrajectoryTokens } from "./trajectory-tokens.ts";

const tokensOf = (trajectory: TrajectoryTokens) => {
  const tokens = allTokens(trajectory.segments);
  return packTrajectory(trajectory).rows.map((row) => [...positionsOf(row.ranges)].map((p) => tokens[p] ?? -1));
};
const maskOf = (trajectory: TrajectoryTokens) =>
  packTrajectory(trajectory).rows.map((row) => rowMask(row, trajectory, null));

describe("packTrajectory", () => {
  it("joins turns on an exact prefix and breaks otherwise (vector F)", () => {
    const joined = buildTrajectory([
      { prompt: [1, 2, 3], sampled: [10, 11] },
      { prompt: [1, 2, 3, 10, 11, 4, 5], sampled: [12] },
    ]);
    expect(tokensOf(joined)).toEqual([[1, 2, 3, 10, 11, 4, 5, 12]]);
    const broken = buildTrajectory([
      { prompt: [1, 2, 3], sampled: [10, 11] },
      { prompt: [1, 2, 3, 10, 99], sampled: [12] },
    ]);
    expect(tokensOf(broken)).toEqual([
      [1, 2, 3, 10, 11],
      [1, 2, 3, 10, 99, 12],
    ]);
    expect(packTrajectory(broken).breaks).toBe(1);
  });

  it("keeps the sampled ids when the server re-encodes them, and counts the drift (fault 14)", () => {
    const same = buildTrajectory([
      { prompt: [9], sampled: [1, 2] },
      { prompt: [9, 1, 2, 4], sampled: [5] },
    ]);
    expect(tokensOf(same)).toEqual([[9, 1, 2, 4, 5]]);
    const drifted = buildTrajectory([
      { prompt: [9], sampled: [1, 2] },
      { prompt: [9, 3, 4], sampled: [5] },
    ]);
    expect(tokensOf(drifted)).toEqual([
      [9, 1, 2],
      [9, 3, 4, 5],
    ]);
    expect(packTrajectory(drifted).breaks).toBe(1);
    expect(maskOf(drifted)).toEqual([
      ["template", null, null],
      ["observation", "observation", "observation", null],
    ]);
  });

  it("trains sampled tokens that a later prompt repeats in another segment", () => {
    // The second prompt is a whole copy: equal tokens, other positions.
    const trajectory: TrajectoryTokens = {
      segments: [
        segment(0, "template", [9]),
        segment(1, "sampled", [1, 2], [-0.1, -0.2]),
        segment(2, "template", [9, 1, 2, 4]),
        segment(3, "sampled", [5], [-0.3]),
      ],
      turns: [turnRecord(0, 1, [{ start: 0, end: 1 }]), turnRecord(1, 3, [{ start: 3, end: 7 }])],
    };
    expect(tokensOf(trajectory)).toEqual([[9, 1, 2, 4, 5]]);
    expect(maskOf(trajectory)).toEqual([["template", null, null, "template", null]]);
  });

  it("keeps the glue between turns, untrained (fault 15)", () => {
    const trajectory = buildTrajectory([
      { prompt: [1, 2], sampled: [10, 99], logprobs: [-0.1, -0.2] },
      { prompt: [1, 2, 10, 99, 198, 100, 30, 31], sampled: [11, 99], logprobs: [-0.3, -0.4] },
    ]);
    expect(tokensOf(trajectory)).toEqual([[1, 2, 10, 99, 198, 100, 30, 31, 11, 99]]);
    const trained = maskOf(trajectory)[0]?.map((reason) => (reason === null ? 1 : 0));
    expect(trained?.slice(2)).toEqual([1, 1, 0, 0, 0, 0, 1, 1]);
  });

  it("trains a fork's shared action once and lets the first branch go on", () => {
    const trajectory: TrajectoryTokens = {
      segments: [
        segment(0, "template", [1]),
        segment(1, "sampled", [10], [-0.1]),
        segment(2, "observation", [2]),
        segment(3, "sampled", [11], [-0.1]),
        segment(4, "observation", [3]),
        segment(5, "sampled", [12], [-0.1]),
        segment(6, "observation", [4]),
        segment(7, "sampled", [13], [-0.1]),
      ],
      turns: [
        turnRecord(0, 1, [{ start: 0, end: 1 }]),
        turnRecord(1, 3, [{ start: 0, end: 3 }]),
        turnRecord(2, 5, [
          { start: 0, end: 2 },
          { start: 4, end: 5 },
        ]),
        turnRecord(3, 7, [
          { start: 0, end: 4 },
          { start: 6, end: 7 },
        ]),
      ],
    };
    expect(tokensOf(trajectory)).toEqual([
      [1, 10, 2, 11, 4, 13],
      [1, 10, 3, 12],
    ]);
    expect(maskOf(trajectory)[1]).toEqual(["template", "other-row", "observation", null]);
    expect(packTrajectory(trajectory).breaks).toBe(2);
  });

  it("refuses what cannot be trained honestly", () => {
    const segments = [segment(0, "template", [1]), segment(1, "sampled", [2], [-1])];
    const whole = [{ start: 0, end: 1 }];
    expect(() => packTrajectory({ segments, turns: [turnRecord(0, 1, [])] })).toThrow(/empty prompt/);
    expect(() => packTrajectory({ segments, turns: [turnRecord(0, 0, whole)] })).toThrow(/not a sampled segment/);
    expect(() => packTrajectory({ segments, turns: [turnRecord(0, 9, whole)] })).toThrow(/segment 9/);
    expect(() => packTrajectory({ segments, turns: [turnRecord(0, 1, [{ start: 0, end: 7 }])] })).toThrow(/leaves/);
    expect(packTrajectory({ segments: [], turns: [] })).toEqual({ rows: [], breaks: 0 });
  });
});

describe("rowMask", () => {
  it("masks samples without usable logprobs or without a usable call", () => {
    const trajectory = buildTrajectory([
      { prompt: [1], sampled: [10, 11], logprobs: [-0.1, Number.NEGATIVE_INFINITY] },
      { prompt: [1, 10, 11, 2], sampled: [12], parseError: "no call" },
      { prompt: [1, 10, 11, 2, 12, 3], sampled: [13], logprobs: null },
      { prompt: [1, 10, 11, 2, 12, 3, 13, 4], sampled: [14, 15], logprobs: [-0.1] },
    ]);
    expect(maskOf(trajectory)).toEqual([
      [
        "template",
        null,
        "no-logprob",
        "observation",
        "parse-retry",
        "observation",
        "no-logprob",
        "observation",
        "no-logprob",
        "no-logprob",
      ],
    ]);
  });
  it("counts sampled tokens, not the span between them (fault 20)", () => {
    const trajectory = buildTrajectory([
      { prompt: [1, 2], sampled: [3, 4, 5] },
      { prompt: [1, 2, 3, 4, 5, 6, 7, 8, 9], sampled: [10, 11] },
    ]);
    const mask = maskOf(trajectory)[0] ?? [];
    expect(mask.map((reason) => (reason === null ? 1 : 0))).toEqual([0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1]);
    expect(mask.filter((reason) => reason === null)).toHaveLength(5);
  });
  it("survives storage as runs", () => {
    const reasons = fc.constantFrom<TokenMask>(null, "template", "observation", "ending-cut", "other-row");
    fc.assert(
      fc.property(fc.array(reasons, { maxLength: 50 }), (mask) => {
        expect(decodeMask(encodeMask(mask))).toEqual(mask);
      }),
    );
    for (const broken of [[1], [0, -1], [1, 99], [1.5, -1], [-2, 0]])
      expect(() => decodeMask(broken)).toThrow(RangeError);
  });
});

/** Any history policy: each turn's prompt is made of arbitrary earlier ranges. */
const anyTrajectory = fc
  .array(
    fc.record({
      added: fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }),
      sampled: fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }),
      keep: fc.constantFrom("all", "all", "drop-middle", "none"),
      cut: fc.nat(30),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((turns): TrajectoryTokens => {
    const segments: ReturnType<typeof segment>[] = [];
    const records: ReturnType<typeof turnRecord>[] = [];
    let length = 0;
    for (const { added, sampled, keep, cut } of turns) {
      const seen = length;
      segments.push(segment(segments.length, records.length === 0 ? "template" : "observation", added));
      length += added.length;
      const own = { start: seen, end: length };
      const middle = seen > 1 ? 1 + (cut % (seen - 1)) : seen;
      const kept = {
        all: [{ start: 0, end: seen }],
        none: [],
        "drop-middle": [
          { start: 0, end: 1 },
          { start: middle, end: seen },
        ],
      };
      const prompt = [...kept[keep as keyof typeof kept], own].filter((range) => range.start < range.end);
      segments.push(
        segment(
          segments.length,
          "sampled",
          sampled,
          sampled.map(() => -0.5),
        ),
      );
      length += sampled.length;
      records.push(turnRecord(records.length, segments.length - 1, prompt));
    }
    return { segments, turns: records };
  });

describe("packing any history", () => {
  it("trains every sampled token in exactly one row, after exactly the prompt it was sampled from", () => {
    fc.assert(
      fc.property(anyTrajectory, (trajectory) => {
        const tokens = allTokens(trajectory.segments);
        const { rows, breaks } = packTrajectory(trajectory);
        const trained = rows.flatMap((row) =>
          rowMask(row, trajectory, null).flatMap((reason, t) =>
            reason === null ? [[...positionsOf(row.ranges)][t]] : [],
          ),
        );
        let start = 0;
        const sampled = trajectory.segments.flatMap((part) => {
          const from = start;
          start += part.tokens.length;
          return part.origin === "sampled" ? part.tokens.map((_, t) => from + t) : [];
        });
        expect(trained.sort((a, b) => Number(a) - Number(b))).toEqual(sampled);
        for (const row of rows) {
          const ids = [...positionsOf(row.ranges)].map((position) => tokens[position]);
          row.turns.forEach((index, nth) => {
            const prompt = [...positionsOf(trajectory.turns[index]?.promptRanges ?? [])].map((p) => tokens[p]);
            expect(ids.slice(0, row.sampled[nth]?.start)).toEqual(prompt);
          });
        }
        expect(breaks).toBeGreaterThanOrEqual(rows.length - 1);
      }),
      { numRuns: 300 },
    );
  });
});
