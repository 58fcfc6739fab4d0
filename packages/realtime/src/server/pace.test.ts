import fc from "fast-check";
import { expect, it } from "vitest";
import { Pace } from "./pace.ts";

it("lets a burst through at once, and then no more than its rate", () => {
  const pace = new Pace(1000, 500);
  expect(pace.take(500, 0)).toBe(0);
  expect(pace.take(100, 0)).toBe(100);
  expect(pace.take(100, 100)).toBe(100);
  expect(pace.take(100, 1_000)).toBe(0);
  expect(pace.take(500, 100_000)).toBe(0);
});

it("whoever waits as told never gets more than burst and rate allow, whatever the sizes and pauses", () => {
  const step = fc.record({ bytes: fc.integer({ min: 1, max: 5_000 }), pauseMs: fc.nat(3_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const pace = new Pace(1_000, 2_000);
      let now = 0;
      let sent = 0;
      for (const { bytes, pauseMs } of steps) {
        now += pauseMs;
        now += pace.take(bytes, now);
        sent += bytes;
        expect(sent).toBeLessThanOrEqual(2_000 + now + 1e-6);
      }
    }),
  );
});
