/** What was put into durations is found again, little is claimed of what was seen once, and draws follow the fit. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assumedDurations, drawWork, expectedOf, fitDurations, type RecordedStage } from "./durations.ts";
import { standardNormal } from "./normal.ts";

/** So many instances, seen so often: log-mean 10, instances' deviation `between`, rollouts' `within`. */
function recordedOf(instances: number, times: number, { between = 0.5, within = 0.3, taskSet = 0 } = {}) {
  return (["init", "run", "evaluate"] as const).flatMap((stage) =>
    Array.from({ length: instances }, (_, instanceIndex) => {
      const own = between * standardNormal("recorded", stage, instanceIndex);
      return Array.from({ length: times }, (_, nth): RecordedStage => {
        const log = 10 + own + within * standardNormal("recorded", stage, instanceIndex, nth);
        return { taskSet, instanceIndex, stage, ms: Math.exp(log) };
      });
    }).flat(),
  );
}
const key = (instanceIndex: number, sample = 0, visit = 0) => ({
  instance: { taskSet: 0, split: "train" as const, instanceIndex },
  sample,
  visit,
  attempt: 1,
});

describe("a fit", () => {
  test("finds mean and both deviations again", () => {
    const run = fitDurations(recordedOf(400, 8), 1)?.[0]?.run;
    expect(run?.mean).toBeCloseTo(10, 1);
    expect(run?.betweenDeviation).toBeCloseTo(0.5, 1);
    expect(run?.withinDeviation).toBeCloseTo(0.3, 1);
    expect(run?.seen).toBe(3_200);
  });

  test("shrinks an instance the more, the less was seen of it", () => {
    const stages = recordedOf(40, 8);
    const slow = (times: number): RecordedStage[] =>
      Array.from({ length: times }, () => ({ taskSet: 0, instanceIndex: 1_000, stage: "run", ms: Math.exp(13) }));
    const meanAfter = (times: number) =>
      fitDurations([...stages, ...slow(times)], 1)?.[0]?.run.instances.get(1_000)?.mean ?? 0;
    expect(meanAfter(1)).toBeGreaterThan(10);
    expect(meanAfter(1)).toBeLessThan(meanAfter(3));
    expect(meanAfter(3)).toBeLessThan(13);
  });

  test("never lies outside of what was seen", () => {
    const one = fc.record({
      taskSet: fc.constant(0),
      instanceIndex: fc.nat({ max: 5 }),
      stage: fc.constantFrom("init" as const, "run" as const, "evaluate" as const),
      ms: fc.double({ min: 0, max: 1e7, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), (recorded) => {
        const fit = fitDurations(recorded, 1);
        const complete = new Set(recorded.map(({ stage }) => stage)).size === 3;
        expect(fit !== null).toBe(complete);
        for (const stage of ["init", "run", "evaluate"] as const) {
          const logs = recorded.filter((seen) => seen.stage === stage).map(({ ms }) => Math.log(Math.max(1, ms)));
          const found = fit?.[0]?.[stage];
          if (found === undefined) continue;
          for (const mean of [found.mean, ...[...found.instances.values()].map((own) => own.mean)]) {
            expect(mean).toBeGreaterThanOrEqual(Math.min(...logs) - 1e-9);
            expect(mean).toBeLessThanOrEqual(Math.max(...logs) + 1e-9);
          }
        }
      }),
    );
  });

  test("of a set that was never seen is that of all, without their instances", () => {
    const fit = fitDurations(recordedOf(10, 4, { taskSet: 1 }), 2);
    expect(fit?.[0]?.run.mean).toBeCloseTo(fit?.[1]?.run.mean ?? 0, 9);
    expect(fit?.[1]?.run.instances.size).toBe(10);
    expect(fit?.[0]?.run.instances.size).toBe(0);
  });

  test("is none where a stage was never seen", () => {
    expect(fitDurations([{ taskSet: 0, instanceIndex: 0, stage: "run", ms: 5 }], 1)).toBeNull();
  });
});

describe("draws", () => {
  const fit = fitDurations(recordedOf(200, 8), 1) ?? [];

  test("of one rollout are the same each time, whatever was drawn before", () => {
    const work = drawWork(fit, 3);
    const first = work(key(5, 2));
    work(key(6));
    expect(work(key(5, 2))).toEqual(first);
    expect(work(key(5, 2, 1))).not.toEqual(first);
    expect(drawWork(fit, 4)(key(5, 2))).not.toEqual(first);
  });

  test("lie around the instance's own mean, and those of unknown instances around all", () => {
    const work = drawWork(fit, 1);
    const geometric = (instances: readonly number[]) => {
      const logs = instances.flatMap((at) => Array.from({ length: 40 }, (_, n) => Math.log(work(key(at, n)).runMs)));
      return logs.reduce((sum, log) => sum + log, 0) / logs.length;
    };
    for (const instance of [0, 50, 150]) {
      const own = fit[0]?.run.instances.get(instance)?.mean ?? 0;
      expect(Math.abs(geometric([instance]) - own)).toBeLessThan(0.4);
    }
    const unknown = Array.from({ length: 200 }, (_, at) => 10_000 + at);
    expect(geometric(unknown)).toBeCloseTo(10, 0);
  });

  test("never pass the limit", () => {
    const limits = { init: 1_000, run: 20_000, evaluate: 5_000 };
    const works = Array.from({ length: 300 }, (_, at) => drawWork(fit, 2, limits)(key(at)));
    expect(Math.max(...works.map(({ runMs }) => runMs))).toBe(20_000);
    expect(Math.max(...works.map(({ evaluateMs }) => evaluateMs))).toBe(5_000);
  });

  test("of assumed durations have the mean that was assumed", () => {
    const work = drawWork(assumedDurations({ init: 1_000, run: 60_000, evaluate: 9_000 }, 0.5, 1), 1);
    const all = Array.from({ length: 4_000 }, (_, at) => work(key(at)).runMs);
    expect(all.reduce((sum, ms) => sum + ms, 0) / all.length / 60_000).toBeCloseTo(1, 1);
  });
});

test("of a recorded instance its shrunk geometric mean is expected, of any other what its rollouts are drawn around", () => {
  const fit = fitDurations(recordedOf(20, 8), 1) ?? [];
  const expected = (seed: number, at: number) => expectedOf(fit, seed, key(at).instance)?.run ?? 0;
  expect(expected(1, 3)).toBeCloseTo(Math.exp(fit[0]?.run.instances.get(3)?.mean ?? 0), 6);
  expect(expected(2, 3)).toBe(expected(1, 3));
  const drawn = Array.from({ length: 60 }, (_, sample) => Math.log(drawWork(fit, 1)(key(99, sample)).runMs));
  const mean = drawn.reduce((sum, log) => sum + log, 0) / drawn.length;
  expect(Math.abs(Math.log(expected(1, 99)) - mean)).toBeLessThan(0.15);
  expect(expectedOf(fit, 1, { ...key(3).instance, taskSet: 1 })).toBeNull();
});
