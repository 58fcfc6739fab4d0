import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { learningRateAt, type RateSchedule } from "./learning-rate.ts";

const rates = (schedule: Partial<RateSchedule>, steps: number): number[] =>
  Array.from({ length: steps }, (_, at) =>
    learningRateAt({ learningRate: 1, warmupSteps: 0, decay: "constant", ...schedule }, at + 1, steps),
  );

describe("learningRateAt", () => {
  test("vectors", () => {
    expect(rates({}, 3)).toEqual([1, 1, 1]);
    expect(rates({ warmupSteps: 4 }, 6)).toEqual([0.25, 0.5, 0.75, 1, 1, 1]);
    expect(rates({ decay: "linear" }, 4)).toEqual([1, 0.75, 0.5, 0.25]);
    expect(rates({ warmupSteps: 2, decay: "linear" }, 4)).toEqual([0.5, 1, 1, 0.5]);
    const cosine = rates({ decay: "cosine" }, 3);
    for (const [at, rate] of [1, 0.75, 0.25].entries()) expect(cosine[at]).toBeCloseTo(rate, 12);
  });

  test("never 0, never above the rate; it rises in the warm-up and falls afterwards; the same step has the same rate", () => {
    fc.assert(
      fc.property(
        fc.record({
          learningRate: fc.double({ min: 1e-9, max: 1, noNaN: true }),
          warmupSteps: fc.nat(40),
          decay: fc.constantFrom("constant" as const, "linear" as const, "cosine" as const),
        }),
        fc.integer({ min: 1, max: 60 }),
        (schedule, steps) => {
          const all = rates(schedule, steps);
          for (const [at, rate] of all.entries()) {
            expect(rate).toBeGreaterThan(0);
            expect(rate).toBeLessThanOrEqual(schedule.learningRate * (1 + 1e-12));
            const before = all[at - 1];
            if (before === undefined) continue;
            if (at < schedule.warmupSteps) expect(rate).toBeGreaterThanOrEqual(before);
            else if (at > schedule.warmupSteps) expect(rate).toBeLessThanOrEqual(before);
          }
          if (schedule.warmupSteps > 0 && schedule.warmupSteps <= steps)
            expect(all[schedule.warmupSteps - 1]).toBe(schedule.learningRate);
        },
      ),
    );
  });

  test("a step past the planned ones has a rate too", () => {
    for (const decay of ["linear", "cosine"] as const) {
      const rate = learningRateAt({ learningRate: 1, warmupSteps: 0, decay }, 9, 4);
      expect(rate).toBeGreaterThan(0);
      expect(rate).toBeLessThan(1);
    }
  });
});
