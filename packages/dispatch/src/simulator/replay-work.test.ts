/** What was recorded is played again: the same times, as often, to whom the fit gives them. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fitDurations, type RecordedStage } from "./durations.ts";
import { replayWork } from "./replay-work.ts";

const noLimits = { init: 1e12, run: 1e12, evaluate: 1e12 };
const groupSize = 4;
const rollout = (instanceIndex: number, runMs: number, reset = false, initMs = 1_000): RecordedStage[] => {
  const ms: Readonly<Record<Stage, number>> = { init: initMs, run: runMs, evaluate: 500 };
  return (["init", "run", "evaluate"] as const).map((stage) => ({
    ...{ taskSet: 0, instanceIndex, stage, ms: ms[stage], reset },
  }));
};
const replayOf = (recorded: readonly RecordedStage[], { seed = 1, sets = 1, limitsMs = noLimits } = {}) =>
  replayWork({ recorded, fit: fitDurations(recorded, sets) ?? [], seed, groupSize, limitsMs });
const key = (instanceIndex: number, sample: number, { visit = 0, taskSet = 0, attempt = 1 } = {}) => ({
  ...{ instance: { taskSet, split: "train" as const, instanceIndex }, visit, sample, attempt },
});
const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);

test("one visit of every instance takes the very times that were recorded, and so does every later one", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.integer({ min: 1, max: 1e6 }), { minLength: groupSize, maxLength: groupSize }), {
        minLength: 1,
        maxLength: 8,
      }),
      fc.nat(),
      fc.nat({ max: 5 }),
      (times, seed, visit) => {
        const work = replayOf(
          times.flatMap((own, at) => own.flatMap((ms) => rollout(at, ms))),
          { seed },
        );
        const drawn = times.flatMap((own, at) => own.map((_, sample) => work(key(at, sample, { visit })).runMs));
        expect(sorted(drawn)).toEqual(sorted(times.flat()));
      },
    ),
    { numRuns: 50 },
  );
});

test("an instance that was slow every time is slow again", () => {
  const recorded = [0, 1, 2, 3].flatMap((at) =>
    [1, 2, 3, 4].flatMap((nth) => rollout(at, at === 2 ? 90_000 + nth : 9_000 + nth)),
  );
  const work = replayOf(recorded);
  for (const sample of [0, 1, 2, 3]) {
    expect(work(key(2, sample)).runMs).toBeGreaterThan(80_000);
    expect(work(key(1, sample)).runMs).toBeLessThan(10_000);
  }
});

test("opening and resetting have times of their own, and either stands for the other where only one was seen", () => {
  const both = [0, 1, 2, 3].flatMap((at) => [...rollout(at, 5_000, false, 25_000), ...rollout(at, 5_000, true, 1_500)]);
  expect(replayOf(both)(key(0, 0))).toMatchObject({ initMs: 25_000, resetMs: 1_500 });
  expect(replayOf(rollout(0, 5_000, false, 25_000))(key(0, 0))).toMatchObject({ initMs: 25_000, resetMs: 25_000 });
  expect(replayOf(rollout(0, 5_000, true, 1_500))(key(0, 0))).toMatchObject({ initMs: 1_500, resetMs: 1_500 });
});

test("what was not seen takes a time that somebody took: another set, another instance, another attempt", () => {
  const times = [1_000, 2_000, 40_000, 80_000];
  const work = replayOf(
    times.flatMap((ms, at) => rollout(at, ms)),
    { sets: 2 },
  );
  for (let at = 0; at < 50; at++) {
    expect(times).toContain(work(key(at, 0, { taskSet: 1 })).runMs);
    expect(times).toContain(work(key(100 + at, 1)).runMs);
    expect(times).toContain(work(key(1, 0, { attempt: 2 + at })).runMs);
  }
});

test("never passes the limit, and is one for a seed", () => {
  const recorded = [10_000, 50_000].flatMap((ms, at) => rollout(at, ms));
  const work = replayOf(recorded, { limitsMs: { ...noLimits, run: 20_000 } });
  expect(sorted([0, 1].map((at) => work(key(at, 0)).runMs))).toEqual([10_000, 20_000]);
  expect(replayOf(recorded, { seed: 3 })(key(1, 2))).toEqual(replayOf(recorded, { seed: 3 })(key(1, 2)));
});
