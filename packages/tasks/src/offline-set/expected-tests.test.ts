import { expect, test } from "vitest";
import { expectedTests, type TestRun } from "./expected-tests.ts";

const run = (statuses: Record<string, string>): TestRun => new Map(Object.entries(statuses));

test("a test that turns green is wanted, one that stays green is kept, others are neither", () => {
  const before = run({ turns: "FAILED", stays: "PASSED", stuck: "FAILED", skipped: "SKIPPED", odd: "XFAIL" });
  const after = run({
    turns: "PASSED",
    stays: "PASSED",
    stuck: "FAILED",
    skipped: "SKIPPED",
    odd: "XFAIL",
    fresh: "PASSED",
  });
  const tests = expectedTests("t", [before, before], [after, after]);
  expect(tests).toEqual({ failToPass: ["fresh", "turns"], passToPass: ["odd", "stays"], dropped: [] });
});

test("a test that says different things in equal runs is left out", () => {
  const before = [run({ a: "FAILED", b: "PASSED" }), run({ a: "FAILED", b: "FAILED" })];
  const after = [run({ a: "PASSED", b: "PASSED" }), run({ a: "PASSED", b: "PASSED" })];
  expect(expectedTests("t", before, after)).toEqual({ failToPass: ["a"], passToPass: [], dropped: ["b"] });
});

test("names that a log cut at white space, and docstrings, are left out; unittest's own form is not", () => {
  const name = "test_x (pkg.tests.Case)";
  const after = run({ [name]: "PASSED", "a first line of a docstring": "PASSED", "t.py::test_x[a": "PASSED" });
  const tests = expectedTests("t", [run({})], [after]);
  expect(tests).toEqual({
    failToPass: [name],
    passToPass: [],
    dropped: ["a first line of a docstring", "t.py::test_x[a"],
  });
});

test("a fix that turns nothing green, or breaks a test, makes no task", () => {
  const green = run({ a: "PASSED" });
  expect(() => expectedTests("t", [green], [green])).toThrow(/no test fails before/);
  const broken = run({ a: "FAILED", b: "PASSED" });
  expect(() => expectedTests("t", [green], [broken])).toThrow(/breaks a/);
});
