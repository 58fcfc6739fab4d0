import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildConfig, buildRollout, buildSnapshot, buildStep, counts } from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";
import { StartRate } from "./start-rate.ts";

const now = 1_000_000;
const at = (startsPerSecond: number | null, recentStarts: number[], over = {}) =>
  buildSnapshot({
    config: buildConfig({ dispatcher: { startsPerSecond } }),
    recentStarts,
    steps: [buildStep()],
    ...over,
  });
const line = (count: number) => Array.from({ length: count }, (_, nth) => buildRollout({ rolloutId: `r${nth}` }));
const planned = (startsPerSecond: number | null, recentStarts: number[], rollouts = line(9)) => {
  const { actions, wakeAt } = plan(at(startsPerSecond, recentStarts, { rollouts }), counts(100));
  return { admitted: actions.length, wakeAt };
};

describe("the start rate", () => {
  test("lets a second's worth in at once, then waits for the window", () => {
    expect(planned(3, [])).toEqual({ admitted: 3, wakeAt: now + 1_000 });
    expect(planned(3, [now - 999, now - 500, now - 1])).toEqual({ admitted: 0, wakeAt: now + 1 });
    expect(planned(3, [now - 1_000, now - 500, now - 1])).toEqual({ admitted: 1, wakeAt: now + 500 });
  });

  test("of less than one a second is one in as long", () => {
    expect(planned(0.1, [])).toEqual({ admitted: 1, wakeAt: now + 10_000 });
    expect(planned(0.02, [now - 49_000])).toEqual({ admitted: 0, wakeAt: now + 1_000 });
  });

  test("counts what was admitted and is not taken yet, and sets no timer when nobody waits for it", () => {
    const queued = buildRollout({ rolloutId: "queued", state: "queued", leaseUntil: now + 9_000 });
    expect(planned(2, [now - 100], [queued, ...line(3)])).toEqual({ admitted: 0, wakeAt: now + 900 });
    expect(planned(2, [now - 100], [queued])).toEqual({ admitted: 0, wakeAt: now + 9_000 });
    expect(planned(null, [now, now, now]).admitted).toBe(9);
  });

  test("is kept in every window, and used up", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.02, max: 40, noNaN: true }), (rate) => {
        const windowMs = (1_000 * Math.ceil(rate)) / rate;
        const starts: number[] = [];
        let clock = 0;
        for (let nth = 0; nth < 200; nth++) {
          const limiter = new StartRate({ ...at(rate, starts), now: clock });
          clock = Math.max(clock, limiter.nextAt);
          starts.push(clock);
        }
        for (const start of starts) {
          // A millionth of a millisecond for what floating point loses.
          const within = starts.filter((other) => other > start - windowMs + 1e-6 && other <= start).length;
          expect(within).toBeLessThanOrEqual(Math.ceil(rate));
        }
        expect(clock).toBeCloseTo((Math.ceil(200 / Math.ceil(rate)) - 1) * windowMs, 3);
      }),
      { numRuns: 50 },
    );
  });
});
