import { describe, expect, test } from "vitest";
import { type CheckSide, isBad, judge } from "./check-report.ts";

const side = (succeeded: number, graded: number): CheckSide => ({
  succeeded,
  graded,
  rewards: Array.from({ length: graded }, (_, at) => (at < succeeded ? 1 : 0)),
  durationMs: 1,
});

describe("a checked instance", () => {
  test.each([
    ["good", side(2, 2), side(0, 2), null],
    ["no solution", null, side(0, 1), null],
    ["oracle failed", side(0, 2), side(0, 2), null],
    ["flaky", side(1, 2), side(0, 2), null],
    ["flaky", side(2, 2), side(1, 2), null],
    ["no-op passed", side(2, 2), side(2, 2), null],
    // What doing nothing earns counts, whatever happened to the solution.
    ["no-op passed", null, side(1, 1), "the solution hung"],
    ["broken", null, side(0, 1), "the solution hung"],
    ["broken", null, null, "no image"],
  ] as const)("is %s", (state, oracle, noOp, trouble) => {
    const judged = judge(oracle, noOp, trouble);
    expect(judged.state).toBe(state);
    expect(isBad(judged.state)).toBe(state !== "good" && state !== "no solution");
    expect(judged.reason === null).toBe(state === "good");
  });
});
