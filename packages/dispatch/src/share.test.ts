import type { Demand } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ShareLimits, share } from "./share.ts";

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

const someLimited: fc.Arbitrary<{ demands: Demand[]; limits: ShareLimits }> = fc
  .record({
    wishes: fc.array(
      fc.record({
        weight: fc.constantFrom(0.5, 1, 1, 3),
        held: fc.nat({ max: 4 }),
        more: fc.nat({ max: 12 }),
        evaluates: fc.nat({ max: 16 }),
        priority: fc.nat({ max: 2 }),
        project: fc.option(fc.constantFrom("p", "q"), { nil: undefined }),
        waitingSince: fc.option(fc.nat({ max: 5 })),
      }),
      { maxLength: 7 },
    ),
    p: fc.option(fc.nat({ max: 20 })),
    q: fc.option(fc.nat({ max: 20 })),
    evaluationReserve: fc.nat({ max: 12 }),
  })
  .map(({ wishes, p, q, evaluationReserve }) => ({
    demands: wishes.map(({ more, evaluates, project, ...wish }, at) => ({
      ...wish,
      ...(project === undefined ? {} : { project }),
      runId: `run-${at}`,
      wanted: wish.held + more,
      evaluating: Math.min(evaluates, wish.held + more),
    })),
    limits: {
      evaluationReserve,
      quotas: new Map(Object.entries({ p, q }).flatMap(([name, quota]) => (quota === null ? [] : [[name, quota]]))),
    },
  }));

const total = (numbers: Iterable<number>): number => [...numbers].reduce((a, b) => a + b, 0);
const heldBy = (demands: readonly Demand[]): number => total(demands.map(({ held }) => held));

describe("share with priorities, quotas and a reserve", () => {
  test.each([
    [
      "a higher priority is served first, and leaves one lease to each other",
      6,
      [demand("a", 0, 9), demand("b", 0, 9, { priority: 1 }), demand("c", 0, 9)],
      {},
      { a: 1, b: 4, c: 1 },
    ],
    [
      "with too few leases for everybody, the longest waiting comes before the highest priority",
      1,
      [demand("a", 0, 9, { waitingSince: 1 }), demand("b", 0, 9, { priority: 9, waitingSince: 2 })],
      {},
      { a: 1, b: 0 },
    ],
    [
      "a quota bounds a project's runs together",
      10,
      [demand("a", 0, 9, { project: "p" }), demand("b", 0, 9, { project: "p" }), demand("c", 0, 9)],
      { quotas: new Map([["p", 4]]) },
      { a: 2, b: 2, c: 6 },
    ],
    [
      "a quota below what is held gives nothing and takes nothing",
      10,
      [demand("a", 5, 9, { project: "p" }), demand("b", 0, 9, { project: "p" })],
      { quotas: new Map([["p", 3]]) },
      { a: 5, b: 0 },
    ],
    ["the reserve is kept free of train rollouts", 10, [demand("a", 0, 20)], { evaluationReserve: 3 }, { a: 7 }],
    [
      "and is there when an evaluation comes",
      10,
      [demand("a", 7, 20), demand("b", 0, 8, { evaluating: 8 })],
      { evaluationReserve: 3 },
      { a: 7, b: 3 },
    ],
    [
      "an evaluation shares what is beyond the reserve",
      10,
      [demand("a", 0, 20), demand("b", 0, 20, { evaluating: 20 })],
      { evaluationReserve: 4 },
      { a: 5, b: 5 },
    ],
    ["the reserve does not take the one lease of a run", 1, [demand("a", 0, 2)], { evaluationReserve: 1 }, { a: 1 }],
  ])("%s", (_, size, demands, limits, expected) => {
    expect(Object.fromEntries(share(size, demands, limits))).toEqual(expected);
  });

  test("never above size, quota, reserve or wish, and never below what is held", () => {
    fc.assert(
      fc.property(fc.nat({ max: 50 }), someLimited, (size, { demands, limits }) => {
        const granted = share(size, demands, limits);
        const of = ({ runId }: Demand): number => granted.get(runId) ?? 0;
        expect(total(granted.values())).toBeLessThanOrEqual(Math.max(size, heldBy(demands)));
        for (const wish of demands) {
          expect(of(wish)).toBeGreaterThanOrEqual(wish.held);
          expect(of(wish)).toBeLessThanOrEqual(wish.wanted);
        }
        for (const [project, quota] of limits.quotas ?? []) {
          const its = demands.filter((wish) => wish.project === project);
          expect(total(its.map(of))).toBeLessThanOrEqual(Math.max(quota, heldBy(its)));
        }
        const training = total(demands.map((wish) => Math.max(0, of(wish) - (wish.evaluating ?? 0))));
        const holding = total(demands.map((wish) => Math.max(0, wish.held - (wish.evaluating ?? 0))));
        const room = Math.max(0, size - (limits.evaluationReserve ?? 0));
        expect(training).toBeLessThanOrEqual(Math.max(room, holding) + demands.length);
      }),
      { numRuns: 500 },
    );
  });

  test("every run that wants one has one when pool and quotas have one for each", () => {
    fc.assert(
      fc.property(fc.nat({ max: 20 }), someLimited, (spare, { demands, limits }) => {
        const size = heldBy(demands) + demands.length + spare;
        const granted = share(size, demands, { ...limits, quotas: new Map() });
        for (const wish of demands) expect(granted.get(wish.runId)).toBeGreaterThanOrEqual(Math.min(1, wish.wanted));
      }),
    );
  });

  test("a larger pool takes nothing from anyone", () => {
    fc.assert(
      fc.property(fc.nat({ max: 50 }), someLimited, (size, { demands, limits }) => {
        const granted = share(size, demands, limits);
        for (const [runId, more] of share(size + 1, demands, limits)) {
          expect(more).toBeGreaterThanOrEqual(granted.get(runId) ?? 0);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("a lease that is left free is one that nobody may have", () => {
    fc.assert(
      fc.property(fc.nat({ max: 50 }), someLimited, (size, { demands, limits }) => {
        const granted = share(size, demands, { quotas: limits.quotas ?? new Map() });
        if (total(granted.values()) >= size) return;
        const of = ({ runId }: Demand): number => granted.get(runId) ?? 0;
        for (const wish of demands.filter((one) => of(one) < one.wanted)) {
          const quota = limits.quotas?.get(wish.project ?? "") ?? Number.POSITIVE_INFINITY;
          expect(total(demands.filter((one) => one.project === wish.project).map(of))).toBeGreaterThanOrEqual(quota);
        }
      }),
    );
  });

  test("every wish is served in time, whatever the priorities, however small the pool", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 2, max: 6 }), (size, runs) => {
        const since = Array.from({ length: runs }, (_, at) => at);
        for (let round = 0; round < 60; round++) {
          const demands = since.map((waitingSince, at) => demand(`run-${at}`, 0, 2, { waitingSince, priority: at }));
          for (const [at, wish] of demands.entries()) {
            if ((share(size, demands).get(wish.runId) ?? 0) > 0) since[at] = runs + round;
            expect(runs + round - (since[at] ?? 0)).toBeLessThanOrEqual(2 * runs);
          }
        }
      }),
    );
  });
});
