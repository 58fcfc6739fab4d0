/**
 * Grading of what an agent changed, in a fresh sandbox. Invariants: only its patch comes from the agent's sandbox; the reward is 1
 * for a resolved instance, else 0 with the reason; what can't be graded (a patch of our own making that does not fit, a run that
 * leaves no readable result) is a verifier's error and never a reward.
 */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { PatchState } from "@rolldeck/contracts/patch-state";
import type { Sandbox, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { FinishedRollout, GradingSandboxes, GradingScene, Verdict } from "@rolldeck/contracts/ports/task";
import type { TestReport } from "@rolldeck/contracts/test-report";
import { type Applied, applyPatch } from "./apply-patch.ts";
import { makeBase } from "./base.ts";
import { flagsOfCalls, flagsOfFiles } from "./changed-files.ts";
import { type EvalScript, evalScriptOf } from "./eval-script.ts";
import { keepLog, keepReport } from "./grade-report.ts";
import { type Judgement, judgeRun } from "./judge-run.ts";
import type { SweOptions } from "./options.ts";
import { patchFiles } from "./patch-files.ts";
import { r2eScript } from "./r2e-script.ts";
import type { TestResult } from "./resolve.ts";
import { restoreTests } from "./restore-tests.ts";
import type { SweRow } from "./row.ts";
import { runTests, type TestRun } from "./run-tests.ts";
import { executedFiles } from "./runner-files.ts";
import { filesOfCommit } from "./solve.ts";

type GradeOptions = Pick<SweOptions, "setupTimeoutMs" | "evalTimeoutMs" | "onTestTimeout" | "gradeUnchanged">;

export interface GradeRequest {
  readonly row: SweRow;
  /** Of sandboxes that tests run in. */
  readonly spec: TaskSandbox;
  readonly options: GradeOptions;
}

/** What is known before tests run. */
interface Draft {
  readonly row: SweRow;
  readonly patch: NonNullable<TestReport["patch"]>;
  readonly flags: readonly string[];
  readonly phases: Phase[];
  readonly options: GradeOptions;
}
type Phase = TestReport["phases"][number];

/** @throws BoundaryError("verifier" | "sandbox") */
export async function gradeSwe(request: GradeRequest, rollout: FinishedRollout, scene: GradingScene): Promise<Verdict> {
  const { row, options } = request;
  const sandboxes = scene.sandboxes;
  if (sandboxes === undefined) throw new BoundaryError("verifier", "no_sandboxes", "grading has no sandboxes here");
  const { state, patch } = await collectedPatch(sandboxes);
  const draft: Draft = {
    row,
    patch: { bytes: state.bytes, applied: false, by: null, message: state.notes },
    flags: flagsOfCalls(rollout.toolCalls),
    phases: [],
    options,
  };
  if (state.state === "no_base") {
    return settle(
      sandboxes,
      draft,
      "its changes can't be compared with the beginning: git, or the copy of it, is gone",
    );
  }
  if (state.state === "broken") {
    const broken = { ...draft, flags: [...draft.flags, "broke its sandbox"] };
    return settle(sandboxes, broken, "no command can be run in the agent's sandbox any more");
  }
  if (state.state === "too_large") return settle(sandboxes, draft, `a patch of ${state.bytes} bytes is not taken`);
  if (patch.length === 0 && !options.gradeUnchanged) return settle(sandboxes, draft, "no change");
  return gradePatch(request, draft, patch, sandboxes, scene.signal);
}

async function collectedPatch(sandboxes: GradingSandboxes): Promise<{ state: PatchState; patch: Uint8Array }> {
  const told = await sandboxes.collected(artifactNames.patchState);
  if (told === null)
    throw new BoundaryError("verifier", "nothing_collected", "nothing was collected of the agent's work");
  const state = PatchState.parse(JSON.parse(new TextDecoder().decode(told)));
  const patch = state.bytes === 0 ? new Uint8Array() : await sandboxes.collected(artifactNames.patch);
  if (state.state !== "collected") return { state, patch: new Uint8Array() };
  if (patch?.length === state.bytes) return { state, patch };
  const message = `the patch has ${patch?.length ?? 0} bytes, not ${state.bytes}`;
  throw new BoundaryError("verifier", "patch_incomplete", message);
}

async function gradePatch(
  { row, spec, options }: GradeRequest,
  draft: Draft,
  patch: Uint8Array,
  sandboxes: GradingSandboxes,
  signal: AbortSignal,
): Promise<Verdict> {
  const sandbox = await timed(draft.phases, "open", () => freshBase({ row, spec, options }, sandboxes, signal));
  const applied = await timed(draft.phases, "apply", () => tryPatch(sandbox, patch, options, signal));
  const known: Draft = {
    ...draft,
    patch: {
      bytes: patch.length,
      applied: applied.by !== null,
      by: applied.by,
      message: headWithin(applied.message, 4000),
    },
  };
  if (applied.by === null && patch.length > 0) return refuseMisfit(sandboxes, known);
  const script = scriptOf(row, sandbox);
  const { changed, run } = await testPatched({ row, spec, options }, { script, sandbox, phases: known.phases }, signal);
  await keepLog(sandboxes, run.log);
  const judged = judgementOf(row, run);
  const graded: Graded = {
    ...known,
    flags: [...flagsOfFiles(changed), ...draft.flags, ...(run.outOfMemory ? ["out of memory while testing"] : [])],
    script,
    run,
  };
  if (run.timedOut) return settleTimeout(sandboxes, graded);
  if (judged.kind === "judged") return settleJudged(sandboxes, graded, judged);
  if (await patchBroke({ row, spec, options }, { graded, patch, judged }, sandboxes, signal))
    return settle(sandboxes, graded, `${judged.why}; without the patch it does give some: the patch broke it`);
  const code = run.tooLarge === null ? "no_result" : "log_too_large";
  const memory = run.outOfMemory ? " (out of memory)" : "";
  throw new BoundaryError("verifier", code, `${judged.why}${memory}: ${endOf(run)}`);
}

/** The tests over what a patch left, with the test files of before it. */
async function testPatched(
  { row, options }: GradeRequest,
  { script, sandbox, phases }: { readonly script: EvalScript; readonly sandbox: Sandbox; readonly phases: Phase[] },
  signal: AbortSignal,
) {
  const changed = await timed(phases, "restore", () =>
    restoreTests(sandbox, gradedRepository(row, script), options.setupTimeoutMs, signal),
  );
  const request = { testPatch: row.testPatch, timeoutMs: options.evalTimeoutMs };
  return { changed, run: await timed(phases, "tests", () => runTests(sandbox, script, request, signal)) };
}

const judgementOf = (row: SweRow, run: TestRun): Judgement =>
  run.tooLarge === null
    ? judgeRun(row, new TextDecoder().decode(run.log), run.exitCode)
    : { kind: "unreadable", why: run.tooLarge };

type Judged = Extract<Judgement, { kind: "judged" }>;
interface Graded extends Draft {
  readonly script: EvalScript;
  readonly run: TestRun;
}

/** Of SWE-smith, the true fix undoes the row's patch: the same files. */
const gradedRepository = (row: SweRow, script: EvalScript) => ({
  repo: row.repo,
  executed: executedFiles(script.command),
  fixFiles: new Set([...patchFiles(row.patch ?? "").map(({ path }) => path), ...filesOfCommit(row.commitContent)]),
});

const scriptOf = (row: SweRow, sandbox: Sandbox): EvalScript =>
  row.kind === "r2e-gym" ? r2eScript(sandbox.workdir) : evalScriptOf(row, sandbox.workdir);

async function freshBase({ row, spec, options }: GradeRequest, sandboxes: GradingSandboxes, signal: AbortSignal) {
  const sandbox = await sandboxes.open(spec);
  const base = { forAgent: false, timeoutMs: options.setupTimeoutMs, boundary: "verifier" } as const;
  await makeBase(row, sandbox, base, signal);
  return sandbox;
}

const tryPatch = (sandbox: Sandbox, patch: Uint8Array, options: GradeOptions, signal: AbortSignal): Promise<Applied> =>
  patch.length === 0
    ? Promise.resolve({ by: null, message: "no change" })
    : applyPatch(sandbox, patch, options.setupTimeoutMs, signal);

/** The patch was tried on its own beginning when it was made: what does not take it is not what the agent worked in. */
async function refuseMisfit(sandboxes: GradingSandboxes, draft: Draft): Promise<never> {
  await keepReport(sandboxes, reportOf(draft, { success: false }));
  const message = `the patch does not apply to a fresh sandbox, although it did to the agent's: ${draft.patch.message}`;
  throw new BoundaryError("verifier", "patch_does_not_apply", message);
}

/**
 * Whether it is the patch that no result can be read: without it one can. What breaks a log (it ends the tests' script, prints what
 * graders look for, or without end) may be the machine's doing as well, so it has to happen twice.
 */
async function patchBroke(
  request: GradeRequest,
  { graded, patch, judged }: { readonly graded: Graded; readonly patch: Uint8Array; readonly judged: Judgement },
  sandboxes: GradingSandboxes,
  signal: AbortSignal,
): Promise<boolean> {
  const { phases, script } = graded;
  const { row, options } = request;
  if (patch.length === 0) return false;
  const control = await freshBase(request, sandboxes, signal);
  const limits = { testPatch: row.testPatch, timeoutMs: options.evalTimeoutMs };
  const alone = await timed(phases, "control", () => runTests(control, script, limits, signal));
  if (judgementOf(row, alone).kind !== "judged") return false;
  if (judged.kind === "none") return true;
  const sandbox = await freshBase(request, sandboxes, signal);
  if ((await tryPatch(sandbox, patch, options, signal)).by === null) return false;
  const again = await testPatched(request, { script, sandbox, phases }, signal);
  return !again.run.timedOut && judgementOf(row, again.run).kind === "unreadable";
}

async function settleTimeout(sandboxes: GradingSandboxes, graded: Graded): Promise<Verdict> {
  const seconds = graded.options.evalTimeoutMs / 1000;
  const late = { ...graded, flags: [...graded.flags, "tests timed out"] };
  if (graded.options.onTestTimeout === "unresolved")
    return settle(sandboxes, late, `the tests were not done after ${seconds} s`);
  await keepReport(sandboxes, reportOf(late, { success: false }));
  throw new BoundaryError("verifier", "tests_timed_out", `the tests were not done after ${seconds} s`, {
    retryable: true,
  });
}

async function settleJudged(
  sandboxes: GradingSandboxes,
  graded: Graded,
  { resolved, tests, counts, doubt }: Judged,
): Promise<Verdict> {
  const flags = doubt === null ? graded.flags : [...graded.flags, "the test log is not believed"];
  await keepReport(sandboxes, reportOf({ ...graded, flags }, { success: resolved, tests, metrics: counts }));
  const reward = resolved ? 1 : 0;
  const notes = resolved ? null : (doubt ?? countsText(counts));
  return { reward, success: resolved, parts: { resolved: reward }, notes, flags };
}

const countsText = (counts: Readonly<Record<string, number>>): string => {
  const of = (name: string, words: string): string =>
    counts[name] === undefined ? "" : `${counts[`${name}_ok`] ?? 0} of ${counts[name]} ${words}`;
  const lists = [of("fail_to_pass", "fail-to-pass"), of("pass_to_pass", "pass-to-pass"), of("expected", "expected")];
  return `${lists.filter((it) => it !== "").join(" and ")} tests are as wanted`;
};

/** Not resolved, without a judgement of tests. */
async function settle(sandboxes: GradingSandboxes, draft: Draft | Graded, why: string): Promise<Verdict> {
  await keepReport(sandboxes, reportOf(draft, { success: false }));
  return { reward: 0, success: false, parts: { resolved: 0 }, notes: why, flags: draft.flags };
}

interface Result {
  readonly success: boolean;
  readonly tests?: readonly TestResult[];
  readonly metrics?: Readonly<Record<string, number>>;
}

function reportOf(draft: Draft | Graded, result: Result): TestReport {
  const run = "run" in draft ? draft.run : null;
  return {
    version: 1,
    grader: draft.row.kind,
    success: result.success,
    patch: draft.patch,
    command: {
      text: "script" in draft ? headWithin(draft.script.command, 4000) : "",
      exitCode: run === null ? null : (run.exitCode ?? run.scriptExitCode),
      timedOut: run?.timedOut ?? false,
      durationMs: run?.durationMs ?? 0,
      timeoutMs: draft.options.evalTimeoutMs,
    },
    tests: [...(result.tests ?? [])],
    metrics: { ...result.metrics },
    flags: [...draft.flags],
    phases: draft.phases,
  };
}

const endOf = ({ log }: TestRun): string => new TextDecoder().decode(log.subarray(-1500)).trim();

async function timed<T>(phases: Phase[], name: string, act: () => Promise<T>): Promise<T> {
  const start = performance.now();
  try {
    return await act();
  } finally {
    phases.push({ name, durationMs: Math.round(performance.now() - start) });
  }
}
