import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { counts } from "../testing/build-snapshot.ts";
import { someGrants, someSnapshot } from "../testing/some-snapshot.ts";
import { explain } from "./explain.ts";
import { gradingReserve, LeaseBudget } from "./lease-budget.ts";
import { plan } from "./plan.ts";

const even = { init: 96, run: 96, evaluate: 96 };

describe("sandboxes kept for grading", () => {
  test.each([
    [0, even, 0],
    [1, even, 0],
    [2, even, 1],
    [96, even, 4],
    [288, even, 12],
    [288, { ...even, evaluate: 288 }, 21],
    [4096, { ...even, evaluate: 2 }, 2],
  ])("of %i", (grant, bounds, expected) => {
    expect(gradingReserve(grant, bounds)).toBe(expected);
  });

  test("agents take the rest and not one more; grading takes what there is", () => {
    const budget = new LeaseBudget(counts(10), counts(0), { init: 9, run: 9, evaluate: 9 }, 0);
    const agent = { resource: "sandbox", until: "run" } as const;
    for (let nth = 0; nth < 9; nth++) expect(budget.take([agent])).toBeNull();
    expect(budget.take([agent])).toEqual({
      waitsFor: "sandbox",
      resource: "sandbox",
      detail: "agents hold 9 sandboxes; the rest is kept for grading",
    });
    expect(budget.take([{ resource: "sandbox", until: "evaluate" }])).toBeNull();
    expect(budget.take([{ resource: "sandbox", until: "evaluate" }])).toMatchObject({ waitsFor: "sandbox" });
  });

  test("while a grading waits for a sandbox, no agent takes one", () => {
    fc.assert(
      fc.property(someSnapshot, someGrants, (snapshot, grants) => {
        const reasons = explain(snapshot, grants);
        const starved = snapshot.rollouts.some(
          ({ stage, rolloutId }) => stage === "evaluate" && reasons.get(rolloutId)?.waitsFor === "sandbox",
        );
        if (!starved) return;
        const taken = plan(snapshot, grants).actions.flatMap((action) => (action.do === "admit" ? action.leases : []));
        expect(taken.filter(({ resource }) => resource === "sandbox")).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});
