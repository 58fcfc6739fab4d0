import { expect, it } from "vitest";
import { countTests, type ReportedTest, testRows } from "./test-rows.ts";

const test = (name: string, more: Partial<ReportedTest> = {}): ReportedTest => ({
  name,
  status: "passed",
  wanted: null,
  ok: null,
  message: null,
  ...more,
});
const tests = [
  test("other passed"),
  test("other failed", { status: "failed" }),
  test("p2p ok", { wanted: "pass-to-pass", ok: true }),
  test("p2p broken", { wanted: "pass-to-pass", ok: false, status: "failed", message: "AssertionError: 1 != 2" }),
  test("f2p ok", { wanted: "fail-to-pass", ok: true, status: "xfail" }),
  test("f2p missing", { wanted: "fail-to-pass", ok: false, status: "missing" }),
];
const names = (rows: readonly ReportedTest[]) => rows.map(({ name }) => name);

it("puts what decides first: failing, mended, kept, then what nobody asks for", () => {
  expect(names(testRows(tests, "all", ""))).toEqual([
    "p2p broken",
    "f2p missing",
    "f2p ok",
    "p2p ok",
    "other failed",
    "other passed",
  ]);
});

it("shows one kind, and those with all the words in name, status or message", () => {
  expect(names(testRows(tests, "failing", ""))).toEqual(["p2p broken", "f2p missing", "other failed"]);
  expect(names(testRows(tests, "others", ""))).toEqual(["other failed", "other passed"]);
  expect(names(testRows(tests, "all", "P2P  assertionerror"))).toEqual(["p2p broken"]);
  expect(names(testRows(tests, "pass-to-pass", "missing"))).toEqual([]);
});

it("counts what is as it should be", () => {
  expect(countTests(tests, "fail-to-pass")).toEqual({ ok: 1, all: 2 });
  expect(countTests(tests, "pass-to-pass")).toEqual({ ok: 1, all: 2 });
  expect(countTests(tests, "others")).toEqual({ ok: 1, all: 2 });
});
