import type { Demand } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { share } from "./share.ts";

const demand = (runId: string, held: number, wanted: number, over: Partial<Demand> = {}): Demand => ({
  runId,
  weight: 1,
  held,
  wanted,
  ...over,
});

const someDemands = fc
  .array(
    fc.record({
      weight: fc.constantFrom(0.5, 1, 1, 2, 3),
      held: fc.nat({ max: 6 }),
      more: fc.nat({ max: 20 }),
      waitingSince: fc.option(fc.nat({ max: 5 })),
    }),
    { maxLength: 8 },
  )
  .map((wishes) => wishes.map(({ more, ...wish }, at) => ({ ...wish, runId: `run-${at}`, wanted: wish.held + more })));

describe("share", () => {
  test.each([
    ["one run takes what it wants", 10, [demand("a", 0, 4)], { a: 4 }],
    ["equal runs get equal parts", 9, [demand("a", 0, 9), demand("b", 0, 9), demand("c", 0, 9)], { a: 3, b: 3, c: 3 }],
    ["a modest run leaves its rest to others", 10, [demand("a", 0, 2), demand("b", 0, 20)], { a: 2, b: 8 }],
    ["weights count", 8, [demand("a", 0, 9, { weight: 3 }), demand("b", 0, 9)], { a: 6, b: 2 }],
    ["held leases are never taken back", 4, [demand("a", 4, 9), demand("b", 0, 9)], { a: 4, b: 0 }],
    ["a freed lease goes to who has least", 5, [demand("a", 4, 9), demand("b", 0, 9)], { a: 4, b: 1 }],
    ["a pool made smaller than what is held", 2, [demand("a", 4, 4), demand("b", 0, 1)], { a: 4, b: 0 }],
    ["nothing wanted, nothing given", 5, [demand("a", 0, 0)], { a: 0 }],
    [
      "ties go to the longest waiting",
      1,
      [demand("a", 0, 1, { waitingSince: 20 }), demand("b", 0, 1, { waitingSince: 10 })],
      { a: 0, b: 1 },
    ],
  ])("%s", (_, size, demands, expected) => {
    expect(Object.fromEntries(share(size, demands))).toEqual(expected);
  });

  test("is within the pool, never below held, never above wanted, and leaves nothing free that somebody wants", () => {
    fc.assert(
      fc.property(fc.nat({ max: 60 }), someDemands, (size, demands) => {
        const granted = share(size, demands);
        const sum = [...granted.values()].reduce((a, b) => a + b, 0);
        const held = demands.reduce((total, wish) => total + wish.held, 0);
        const wanted = demands.reduce((total, wish) => total + wish.wanted, 0);
        expect(sum).toBe(Math.min(Math.max(size, held), wanted));
        for (const wish of demands) {
          expect(granted.get(wish.runId)).toBeGreaterThanOrEqual(wish.held);
          expect(granted.get(wish.runId)).toBeLessThanOrEqual(wish.wanted);
        }
      }),
    );
  });

  test("is max-min fair: nobody who wants more has less for its weight than another by more than one lease", () => {
    fc.assert(
      fc.property(fc.nat({ max: 60 }), someDemands, (size, demands) => {
        const granted = share(size, demands);
        const of = ({ runId }: Demand) => granted.get(runId) ?? 0;
        for (const poor of demands.filter((wish) => of(wish) < wish.wanted)) {
          for (const rich of demands.filter((wish) => of(wish) > wish.held)) {
            expect((of(rich) - 1) / rich.weight).toBeLessThanOrEqual(of(poor) / poor.weight);
          }
        }
      }),
    );
  });

  test("a larger pool takes nothing from anyone, and a larger wish is never punished", () => {
    fc.assert(
      fc.property(fc.nat({ max: 40 }), someDemands, fc.nat({ max: 7 }), (size, demands, which) => {
        const granted = share(size, demands);
        for (const [runId, more] of share(size + 1, demands))
          expect(more).toBeGreaterThanOrEqual(granted.get(runId) ?? 0);
        const greedy = demands.map((wish, at) => (at === which ? { ...wish, wanted: wish.wanted + 5 } : wish));
        expect(share(size, greedy).get(`run-${which}`) ?? 0).toBeGreaterThanOrEqual(granted.get(`run-${which}`) ?? 0);
      }),
    );
  });

  test("every wish is served within as many rounds as there were older wishes, however small the pool", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 2, max: 6 }), (size, runs) => {
        // Each round the served runs finish and wish anew; the others go on waiting.
        const since = Array.from({ length: runs }, (_, at) => at);
        for (let round = 0; round < 60; round++) {
          const demands = since.map((waitingSince, at) => demand(`run-${at}`, 0, 2, { waitingSince, weight: at + 1 }));
          for (const [at, wish] of demands.entries()) {
            if ((share(size, demands).get(wish.runId) ?? 0) > 0) since[at] = runs + round;
            expect(runs + round - (since[at] ?? 0)).toBeLessThanOrEqual(2 * runs);
          }
        }
      }),
    );
  });
});
