import { type Ending, endingNames, endingRule, maskReasons } from "@rolldeck/contracts/endings";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SharedRollout, type SharedRow, sharedMetrics } from "./shared-metrics.ts";

const span = (count: number, reason: SharedRow["mask"][number]["reason"] = null) => ({ count, reason });
const scored = (reward: number, success: boolean): SharedRollout => ({ ending: "finish_tool", reward, success });

describe("by hand", () => {
  // Trained are the 2nd and 3rd token; the 4th is what a tool said.
  const row: SharedRow = {
    mask: [span(1, "template"), span(2), span(1, "observation")],
    samplerLogprobs: [null, Math.log(0.5), Math.log(0.25), null],
    trainerLogprobs: [null, Math.log(0.25), Math.log(0.5), Math.log(0.9)],
  };
  it("each definition is its own number", () => {
    const metrics = sharedMetrics([row], [scored(1, true), scored(0.5, false), scored(0, false)]);
    expect(metrics["shared/reward"]).toBe(0.5);
    expect(metrics["shared/success"]).toBeCloseTo(1 / 3, 15);
    expect(metrics["shared/trained-tokens"]).toBe(2);
    expect(metrics["shared/entropy"]).toBeCloseTo((3 / 2) * Math.LN2, 12);
    expect(metrics["shared/mismatch-logprob"]).toBeCloseTo(Math.LN2, 12);
    expect(metrics["shared/mismatch-prob"]).toBeCloseTo(0.25, 12);
    // Differences of both signs cancel.
    expect(metrics["shared/mismatch-signed"]).toBeCloseTo(0, 12);
    expect(metrics["shared/mismatch-half-square"]).toBeCloseTo(Math.LN2 ** 2 / 2, 12);
  });
  it("the signed mean is positive where the trainer finds the tokens less likely than the sampler did", () => {
    const colder = { ...row, trainerLogprobs: [null, Math.log(0.25), Math.log(0.125), null] };
    expect(sharedMetrics([colder], [])["shared/mismatch-signed"]).toBeCloseTo(Math.LN2, 12);
  });
  it("what is not known is left out, never 0", () => {
    expect(sharedMetrics([], [])).toEqual({});
    const silent = { ...row, trainerLogprobs: null };
    expect(Object.keys(sharedMetrics([silent], []))).toEqual(["shared/trained-tokens", "shared/entropy"]);
    const masked = { ...row, mask: [span(4, "zero-variance")] };
    expect(sharedMetrics([masked], [])).toEqual({ "shared/trained-tokens": 0 });
  });
  it("rollouts outside the baseline or without a score do not count", () => {
    const failed: SharedRollout = { ending: "sandbox_lost", reward: 0, success: false };
    const unscored: SharedRollout = { ending: "finish_tool", reward: null, success: null };
    const open: SharedRollout = { ending: null, reward: 1, success: true };
    expect(sharedMetrics([], [scored(1, true), failed, unscored, open])).toEqual({
      "shared/reward": 1,
      "shared/success": 1,
    });
  });
});

const Logprob = fc.oneof(
  fc.double({ min: -40, max: 0, noNaN: true }),
  fc.constantFrom(null, Number.NaN, Number.NEGATIVE_INFINITY),
);
const Row: fc.Arbitrary<SharedRow> = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.option(fc.constantFrom(...maskReasons))), { maxLength: 6 })
  .chain((spans) => {
    const mask = spans.map(([count, reason]) => ({ count, reason }));
    const length = mask.reduce((sum, { count }) => sum + count, 0);
    const list = fc.array(Logprob, { minLength: length, maxLength: length });
    return fc.record({ mask: fc.constant(mask), samplerLogprobs: list, trainerLogprobs: fc.option(list) });
  });
const Rollout: fc.Arbitrary<SharedRollout> = fc.record({
  ending: fc.option(fc.constantFrom<Ending>(...endingNames)),
  reward: fc.option(fc.double({ min: -100, max: 100, noNaN: true })),
  success: fc.option(fc.boolean()),
});
const shuffled = <T>(list: readonly T[]): fc.Arbitrary<T[]> =>
  fc.shuffledSubarray([...list], { minLength: list.length, maxLength: list.length });

describe("for any rows and rollouts", () => {
  it("every number is finite and within what its definition allows", () => {
    fc.assert(
      fc.property(fc.array(Row, { maxLength: 6 }), fc.array(Rollout, { maxLength: 8 }), (rows, rollouts) => {
        const metrics = sharedMetrics(rows, rollouts);
        expect(Object.values(metrics).every(Number.isFinite)).toBe(true);
        const trained = rows.flatMap(({ mask }) => mask).reduce((n, each) => n + (each.reason ? 0 : each.count), 0);
        expect(metrics["shared/trained-tokens"] ?? 0).toBe(trained);
        const { "shared/mismatch-logprob": absolute, "shared/mismatch-signed": signed } = metrics;
        if (absolute !== undefined && signed !== undefined) {
          expect(Math.abs(signed)).toBeLessThanOrEqual(absolute + 1e-9);
          // Jensen: the mean square is at least the squared mean.
          expect(2 * (metrics["shared/mismatch-half-square"] ?? -1)).toBeGreaterThanOrEqual(absolute ** 2 - 1e-9);
          // exp has slope at most 1 below 0.
          expect(metrics["shared/mismatch-prob"] ?? 2).toBeLessThanOrEqual(Math.min(absolute, 1) + 1e-9);
        }
        const counted = rollouts.filter(
          ({ ending, reward }) => ending !== null && endingRule(ending).inBaseline && reward !== null,
        );
        expect("shared/reward" in metrics).toBe(counted.length > 0);
      }),
    );
  });
  it("the order of rows and rollouts does not matter, to the last bit", () => {
    const scene = fc
      .tuple(fc.array(Row, { maxLength: 6 }), fc.array(Rollout, { maxLength: 8 }))
      .chain(([rows, rollouts]) =>
        fc.tuple(fc.constant(rows), fc.constant(rollouts), shuffled(rows), shuffled(rollouts)),
      );
    fc.assert(
      fc.property(scene, ([rows, rollouts, otherRows, otherRollouts]) => {
        expect(sharedMetrics(otherRows, otherRollouts)).toEqual(sharedMetrics(rows, rollouts));
      }),
    );
  });
  it("tokens that are not trained enter no number", () => {
    fc.assert(
      fc.property(fc.array(Row, { maxLength: 4 }), fc.double({ min: -9, max: 0, noNaN: true }), (rows, other) => {
        const changed = rows.map((row) => {
          const trained = row.mask.flatMap(({ count, reason }) => new Array<boolean>(count).fill(reason === null));
          const swap = (list: readonly (number | null)[]) => list.map((value, t) => (trained[t] ? value : other));
          return {
            ...row,
            samplerLogprobs: swap(row.samplerLogprobs),
            trainerLogprobs: row.trainerLogprobs && swap(row.trainerLogprobs),
          };
        });
        expect(sharedMetrics(changed, [])).toEqual(sharedMetrics(rows, []));
      }),
    );
  });
  it("a trainer that agrees with the sampler has no mismatch by any definition", () => {
    fc.assert(
      fc.property(fc.array(Row, { minLength: 1, maxLength: 4 }), (rows) => {
        const metrics = sharedMetrics(
          rows.map((row) => ({ ...row, trainerLogprobs: row.samplerLogprobs })),
          [],
        );
        for (const [name, value] of Object.entries(metrics))
          if (name.startsWith("shared/mismatch")) expect(value).toBe(0);
      }),
    );
  });
});
