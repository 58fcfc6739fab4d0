import fc from "fast-check";
import { expect, test } from "vitest";
import { type Breaker, closedBreaker, readyAtMs, whenAnswered, whenAsked, whenDown } from "./breaker.ts";

const policy = { threshold: 3, openMs: 100, maxOpenMs: 400 };
const down = (breaker: Breaker, now: number): Breaker => whenDown(whenAsked(breaker, policy, now), policy, now, now);

test("opens after failures in a row, and an answer in between starts the count again", () => {
  let breaker = down(down(closedBreaker, 0), 0);
  expect(readyAtMs(breaker, 0)).toBe(0);
  breaker = down(down(whenAnswered(), 0), 0);
  expect(readyAtMs(breaker, 0)).toBe(0);
  expect(readyAtMs(down(breaker, 0), 0)).toBe(100);
});

test("half open: one probe a window, windows double up to the cap, an answer closes it", () => {
  let breaker = down(down(down(closedBreaker, 0), 0), 0);
  const windows: number[] = [];
  for (let probe = 0; probe < 4; probe++) {
    const at = readyAtMs(breaker, 0);
    const asked = whenAsked(breaker, policy, at);
    // Whoever comes while the probe is under way waits for the next window.
    expect(readyAtMs(asked, at)).toBeGreaterThan(at);
    breaker = whenDown(asked, policy, at, at);
    windows.push(readyAtMs(breaker, at) - at);
  }
  expect(windows).toEqual([200, 400, 400, 400]);
  expect(readyAtMs(whenAnswered(), 5_000)).toBe(5_000);
});

test("late failures of calls sent before it opened open no further window", () => {
  const opened = down(down(down(closedBreaker, 0), 0), 50);
  let late = opened;
  for (let call = 0; call < 500; call++) late = whenDown(late, policy, 0, 60);
  expect(readyAtMs(late, 60)).toBe(readyAtMs(opened, 60));
});

test("however it is used, it can be asked again within its longest window", () => {
  const step = fc.record({ pass: fc.integer({ min: 0, max: 1000 }), answered: fc.boolean(), ask: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let breaker = closedBreaker;
      let now = 0;
      for (const { pass, answered, ask } of steps) {
        now += pass;
        if (ask && readyAtMs(breaker, now) <= now) breaker = whenAsked(breaker, policy, now);
        breaker = answered ? whenAnswered() : whenDown(breaker, policy, now, now);
        expect(readyAtMs(breaker, now) - now).toBeLessThanOrEqual(policy.maxOpenMs);
      }
    }),
  );
});
