/** What a log of tests says of each, in the two formats of the set: equal to infra/swe-set/grade.py, which reads it in the sandbox. */
import type { TestRun } from "./expected-tests.ts";
import type { OfflineEntry } from "./set-list.ts";

const start = ">>>>> Start Test Output";
const end = ">>>>> End Test Output";

/** A line of pytest's summary (-rA) begins with the status. */
const pytestLine = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+)/;
/** A line of unittest (-v 2) ends with it. */
const djangoLine = /^(.+) \.\.\. (ok|OK|FAIL|ERROR|skipped.*|expected failure|unexpected success)$/;
const djangoWords: Readonly<Record<string, string>> = {
  ok: "PASSED",
  OK: "PASSED",
  FAIL: "FAILED",
  ERROR: "ERROR",
  "expected failure": "XFAIL",
};

/** Null when the log lacks a marker: the tests did not run to their end. */
export function readLog(log: string, format: OfflineEntry["log"]): TestRun | null {
  const from = log.indexOf(start);
  const to = log.lastIndexOf(end);
  if (from < 0 || to < from) return null;
  const statuses = new Map<string, string>();
  for (const line of log.slice(from, to).split("\n")) {
    const found = format === "django" ? ofDjango(line.trim()) : ofPytest(line);
    if (found !== null) statuses.set(...found);
  }
  return statuses;
}

function ofPytest(line: string): [string, string] | null {
  const [, status, name] = pytestLine.exec(line) ?? [];
  return status === undefined || name === undefined ? null : [name, status];
}

function ofDjango(line: string): [string, string] | null {
  const [, name, word] = djangoLine.exec(line) ?? [];
  if (name === undefined || word === undefined) return null;
  return [name, word.startsWith("skipped") ? "SKIPPED" : (djangoWords[word] ?? "FAILED")];
}
