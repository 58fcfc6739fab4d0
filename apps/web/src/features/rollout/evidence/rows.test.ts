import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import { expect, it } from "vitest";
import { logRows, readSandboxLog, subjectWords } from "./log-rows.ts";
import { timingRows } from "./timing-rows.ts";

const line = (subject: string, more: object = {}) =>
  JSON.stringify({ atMs: 1, what: "exec", subject, durationMs: 2, exitCode: 0, bytes: 3, trouble: null, ...more });

it("reads a log around what can't be read of it, and finds trouble in it", () => {
  const log = readSandboxLog(
    [line("ls"), "", '{"cut', line("make", { exitCode: 2 }), line("x", { trouble: "no room" }), "[1]"].join("\n"),
  );
  expect([log.lines.length, log.unreadable]).toEqual([3, 2]);
  expect(logRows(log, true, "").map(({ subject }) => subject)).toEqual(["make", "x"]);
  expect(logRows(log, false, "EXEC room").map(({ subject }) => subject)).toEqual(["x"]);
});

it("says a command without the environment that it is run in, on one line", () => {
  const wrapped = "/usr/bin/env -i PATH=/usr/bin:/bin HOME= /bin/sh -c \nset -u\n\tgit apply --check";
  expect(subjectWords(wrapped)).toBe("/bin/sh -c set -u git apply --check");
  expect(subjectWords("env -i")).toBe("env -i");
  expect(subjectWords("printenv -i A=b c")).toBe("printenv -i A=b c");
});

it("shows no work where nobody began, only how long it waited", () => {
  const [queuedAt, endedAt] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:03.000Z"];
  const span = { ...{ stage: "init" as const, attempt: 1, queuedAt, startedAt: null, workerId: null }, endedAt };
  const rows = (spans: RolloutDetail["spans"]) =>
    timingRows({ attempt: 1, spans }, [], null).map(({ label, ms }) => [label, ms]);
  expect(rows([span])).toEqual([["init, waiting", 3000]]);
  expect(rows([{ ...span, endedAt: null }])).toEqual([["init, waiting", null]]);
});

it("divides a run stage into what its turns took, and puts what a grader did inside of its verifying", () => {
  const [queuedAt, startedAt] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"];
  const span = { attempt: 1, queuedAt, startedAt, workerId: "w" };
  const ended = { ...span, stage: "run" as const, endedAt: "2026-01-01T00:00:11.000Z" };
  const turns = [
    { sampleMs: 2_000, calls: [{ durationMs: 500 }, { durationMs: null }] },
    { sampleMs: 1_000, calls: [] },
  ];
  const told = (rows: ReturnType<typeof timingRows>) =>
    rows.map(({ label, ms, inner, since }) => [label, ms, inner, since]);
  expect(told(timingRows({ attempt: 1, spans: [ended] }, [], null, turns))).toEqual([
    ["run, waiting", 1_000, false, null],
    ["run", 10_000, false, null],
    ["model calls", 3_000, false, null],
    ["tool calls", 500, false, null],
  ]);
  const report = {
    ...{ version: 1 as const, success: true, grader: "swe-bench", patch: null, tests: [], metrics: {}, flags: [] },
    command: { text: "", exitCode: 0, timedOut: false, durationMs: 1, timeoutMs: 2 },
    phases: [
      { name: "open", durationMs: 7 },
      { name: "tests", durationMs: 9 },
    ],
  };
  const graded = { ...span, stage: "evaluate" as const, endedAt: null };
  expect(told(timingRows({ attempt: 1, spans: [graded] }, [], report, turns))).toEqual([
    ["evaluate, waiting", 1_000, false, null],
    ["evaluate", null, false, startedAt],
    ["open the sandbox", 7, true, null],
    ["run the tests", 9, true, null],
  ]);
});

it("lays out each stage's wait and work with what its sandboxes were busy with", () => {
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
  const span = (stage: "init" | "run" | "evaluate", from: number, attempt = 1) => ({
    ...{ stage, attempt, queuedAt: at(from), startedAt: at(from + 1), workerId: "w" },
    endedAt: stage === "evaluate" ? null : at(from + 5),
  });
  const spans: RolloutDetail["spans"] = [span("init", 0), span("run", 5), span("evaluate", 10), span("init", 0, 2)];
  const sandbox = (purpose: "agent" | "grade", phases: Record<string, number>, attempt = 1): SandboxInfo => ({
    ...{
      sandboxId: `sbx_${purpose}`,
      runId: "r",
      rolloutId: "o",
      instanceId: "i",
      sample: 0,
      attempt,
      purpose,
      runtime: "docker",
      image: null,
    },
    ...{ network: "none", state: "closed", inPlace: false, reason: null, keepUntil: null, phases },
    ...{ uses: null, idleSince: null },
    ...{ createdAt: at(0), openedAt: at(1), closedAt: at(9) },
  });
  const rows = timingRows(
    { attempt: 1, spans },
    [
      sandbox("agent", { open: 900, collect: 80 }),
      sandbox("grade", { open: 700, other: 5 }),
      sandbox("agent", { open: 1 }, 2),
    ],
    null,
  );
  expect(rows.map(({ label, stage, ms, ofMs }) => [label, stage, ms, ofMs])).toEqual([
    ["init, waiting", "init", 1000, null],
    ["init", "init", 4000, null],
    ["open the sandbox", "init", 900, 4000],
    ["run, waiting", "run", 1000, null],
    ["run", "run", 4000, null],
    ["collect what it left", "run", 80, 4000],
    ["evaluate, waiting", "evaluate", 1000, null],
    ["evaluate", "evaluate", null, null],
    ["open the sandbox (grading)", "evaluate", 700, null],
    ["other (grading)", "evaluate", 5, null],
  ]);
});
