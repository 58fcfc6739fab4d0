import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readLog } from "./read-log.ts";

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

test("pytest's summary", () => {
  expect(Object.fromEntries(readLog(pytestLog, "pytest") ?? [])).toEqual({
    "tests/test_a.py::test_one": "PASSED",
    "tests/test_a.py::test_two[x-1]": "PASSED",
    "[2]": "SKIPPED",
    "tests/test_a.py::test_odd": "XFAIL",
    "tests/test_a.py::test_three": "FAILED",
    "tests/test_b.py": "ERROR",
  });
});

test("unittest's lines, told by a docstring where there is one", () => {
  expect(Object.fromEntries(readLog(djangoLog, "django") ?? [])).toEqual({
    "test_a (pkg.tests.Case)": "PASSED",
    "What it is about": "FAILED",
    "test_c (pkg.tests.Case)": "SKIPPED",
    "test_d (pkg.tests.Case)": "XFAIL",
    "test_e (pkg.tests.Case)": "ERROR",
  });
});

test("a log without both markers says nothing", () => {
  expect(readLog("PASSED a\n", "pytest")).toBeNull();
  expect(readLog(">>>>> Start Test Output\nPASSED a\n", "pytest")).toBeNull();
});

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

test("the script of the Harbor directories reads the same: a listed test decides, a missing one counts as failed", () => {
  const one = "tests/test_a.py::test_one";
  const both = grade(pytestLog, "pytest", [one], ["tests/test_a.py::test_two[x-1]", "tests/test_a.py::test_odd"]);
  expect(both).toEqual({ status: 0, reward: { reward: 1, fail_to_pass: 1, pass_to_pass: 2 } });
  expect(grade(pytestLog, "pytest", [one, "tests/test_a.py::test_three"], []).reward.reward).toBe(0);
  expect(grade(pytestLog, "pytest", [one], ["tests/test_a.py::gone"]).reward.reward).toBe(0);
  expect(grade(djangoLog, "django", ["test_a (pkg.tests.Case)"], ["test_c (pkg.tests.Case)"]).reward.reward).toBe(1);
  expect(grade(djangoLog, "django", ["test_c (pkg.tests.Case)"], []).reward.reward).toBe(0);
});

test("without a result the script writes no reward, which is not a reward of 0", () => {
  expect(grade("PASSED a\n", "pytest", ["a"], [])).toEqual({ status: 2, reward: null });
});
