import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { logParsers } from "../swe/logs/log-parsers.ts";
import { readTestLog } from "../swe/logs/read-test-log.ts";

const home = mkdtempSync(join(tmpdir(), "rolldeck-log-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const gradeScript = resolve(import.meta.dirname, "../../../../infra/swe-set/grade.py");

const between = (text: string): string =>
  `noise\nPASSED outside\n>>>>> Start Test Output\n${text}\n>>>>> End Test Output\nPASSED after\n`;

const pytestLog = between(
  [
    "....F.s [100%]",
    "E   PASSED is no status here",
    "PASSED tests/test_a.py::test_one",
    "PASSED tests/test_a.py::test_two[x-1]",
    "SKIPPED [2] tests/test_a.py:286: Requires another package",
    "XFAIL tests/test_a.py::test_odd - reason",
    "FAILED tests/test_a.py::test_three - AssertionError: assert 1 == 2",
    "ERROR tests/test_b.py - ModuleNotFoundError",
    "1 failed, 2 passed",
  ].join("\n"),
);
const djangoLog = between(
  [
    "test_a (pkg.tests.Case) ... ok",
    "test_b (pkg.tests.Case)",
    "What it is about ... FAIL",
    "test_c (pkg.tests.Case) ... skipped 'no such feature'",
    "test_d (pkg.tests.Case) ... expected failure",
    "test_e (pkg.tests.Case) ... ERROR",
    "FAILED (failures=1)",
  ].join("\n"),
);

/** What the row's grader reads of it. */
function statuses(log: string, format: "pytest" | "django"): Record<string, string> {
  const read = readTestLog(log, logParsers[format], null);
  return read.kind === "results" ? Object.fromEntries(read.statuses) : {};
}

/** @returns exit code, and the reward file as it was written */
function grade(log: string, format: "pytest" | "django", failToPass: string[], passToPass: string[]) {
  const [logFile, expected, reward] = ["log", "expected.json", "reward.json"].map((name) => join(home, name));
  if (logFile === undefined || expected === undefined || reward === undefined) throw new Error("no folder");
  rmSync(reward, { force: true });
  writeFileSync(logFile, log);
  writeFileSync(expected, JSON.stringify({ log: format, failToPass, passToPass }));
  const { status } = spawnSync("python3", ["-I", gradeScript, logFile, expected, reward]);
  return { status, reward: existsSync(reward) ? JSON.parse(readFileSync(reward, "utf8")) : null };
}

test.each([
  ["pytest", pytestLog],
  ["django", djangoLog],
] as const)("the script reads a log of %s as the row's grader does, test by test", (format, log) => {
  const read = statuses(log, format);
  expect(Object.keys(read).length).toBeGreaterThanOrEqual(4);
  for (const [name, status] of Object.entries(read)) {
    // Django's own words stand twice in a log of failures: the second time they are no name of a test.
    if (!log.includes(`${name} ... `) && format === "django") continue;
    const passes = status === "PASSED" || status === "XFAIL";
    expect([name, grade(log, format, [name], []).reward.reward]).toEqual([name, passes ? 1 : 0]);
    const kept = passes || status === "SKIPPED";
    expect([name, grade(log, format, [], [name]).reward.reward]).toEqual([name, kept ? 1 : 0]);
  }
});

test("a listed test that is missing counts as failed", () => {
  const one = "tests/test_a.py::test_one";
  expect(grade(pytestLog, "pytest", [one], []).reward).toEqual({ reward: 1, fail_to_pass: 1, pass_to_pass: 0 });
  expect(grade(pytestLog, "pytest", [one], ["tests/test_a.py::gone"]).reward.reward).toBe(0);
  expect(grade(pytestLog, "pytest", ["outside"], []).reward.reward).toBe(0);
});

test("without a whole run the script writes no reward, which is not a reward of 0", () => {
  expect(grade("PASSED a\n", "pytest", ["a"], [])).toEqual({ status: 2, reward: null });
  expect(grade(between("").replace(">>>>> End Test Output", ""), "pytest", ["a"], [])).toEqual({
    status: 2,
    reward: null,
  });
  expect(grade(between(""), "pytest", ["a"], [])).toEqual({ status: 2, reward: null });
  expect(grade(`>>>>> Tests Errored\n${pytestLog}`, "pytest", ["a"], [])).toEqual({ status: 2, reward: null });
  const lies = `${between("PASSED a\n1 passed")}>>>>> Test Exit Code: 1\n`;
  expect(statuses(lies, "pytest")).toEqual({});
  expect(grade(lies, "pytest", ["a"], [])).toEqual({ status: 2, reward: null });
});
