import { expect, test } from "vitest";
import { parsePytest } from "./pytest-logs.ts";
import { failureMessages, readTestLog } from "./read-test-log.ts";

const run = (body: string, after = ""): string =>
  `ERROR: pip found no version of a thing\n+ : '>>>>> Start Test Output'\n${body}\n+ : '>>>>> End Test Output'\n${after}`;
const read = (log: string, exitCode: number | null = null) => readTestLog(log, parsePytest, exitCode);

test("only what stands between the markers counts", () => {
  const log = read(
    `PASSED before.py::noise\n${run("PASSED a.py::b\r\nFAILED a.py::c - no", "PASSED after.py::noise\n")}`,
  );
  expect(log.kind === "results" && Object.fromEntries(log.statuses)).toEqual({
    "a.py::b": "PASSED",
    "a.py::c": "FAILED",
  });
});

test("where nothing stands between them, all of the log counts", () => {
  expect(read(run("nothing", "PASSED late.py::b\n"))).toMatchObject({ kind: "results" });
});

test.each([
  ["", /no start marker/],
  ["bash: /eval.sh: No such file or directory", /no start marker/],
  [">>>>> Start Test Output\nPASSED a.py::b\n", /no end marker/],
  [run("PASSED a.py::b", ">>>>> Tests Timed Out"), /Tests Timed Out/],
  [run("PASSED a.py::b", ">>>>> Patch Apply Failed"), /Patch Apply Failed/],
])("%j is no log of a whole run", (log, why) => {
  expect(read(log)).toMatchObject({ kind: "unreadable", why: expect.stringMatching(why) });
});

test("a run that ended badly and reports no failure is not believed", () => {
  const lie = run("PASSED a.py::b", ">>>>> Test Exit Code: 1\n");
  expect(read(lie)).toMatchObject({ kind: "contradiction", exitCode: 1 });
  expect(read(run("PASSED a.py::b\nFAILED a.py::c"), 1)).toMatchObject({ kind: "results", exitCode: 1 });
  expect(read(run("PASSED a.py::b", ">>>>> Test Exit Code: 0\n"))).toMatchObject({ kind: "results", exitCode: 0 });
  expect(read(run("PASSED a.py::b"))).toMatchObject({ kind: "results", exitCode: null });
});

test("what is known without the log is believed before what the log says", () => {
  expect(read(run("PASSED a.py::b\n>>>>> Test Exit Code: 0", ""), 1)).toMatchObject({
    kind: "contradiction",
    exitCode: 1,
  });
});

test("a run without any result says so, with its end", () => {
  expect(read(run("ImportError"), 2)).toEqual({ kind: "none", exitCode: 2 });
});

test("messages of failures, at most so many", () => {
  const log = "FAILED a.py::b - left - right\nERROR c.py::d\nERROR e.py::f - no fixture\n";
  expect([...failureMessages(log, 10)]).toEqual([
    ["a.py::b", "left - right"],
    ["e.py::f", "no fixture"],
  ]);
  expect(failureMessages(log, 1).size).toBe(1);
});
