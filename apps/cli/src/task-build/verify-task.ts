/**
 * Runs a task's tests in fresh sandboxes, before and after the true fix, several times each: what they say makes the lists. Then both
 * graders must agree on both states: the row's script with its lists, and the Harbor directory's own test script.
 */
import { randomBytes } from "node:crypto";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox, SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { repositoryFolder } from "@rolldeck/tasks/offline-set/eval-script";
import { type ExpectedTests, expectedTests, type TestRun } from "@rolldeck/tasks/offline-set/expected-tests";
import { gradedScript, type HarborFile } from "@rolldeck/tasks/offline-set/harbor-files";
import type { PreparedTask } from "@rolldeck/tasks/offline-set/prepare-task";
import { logParsers } from "@rolldeck/tasks/swe/logs/log-parsers";
import { readTestLog } from "@rolldeck/tasks/swe/logs/read-test-log";
import { z } from "zod";

export interface VerifiedTask {
  readonly tests: ExpectedTests;
  /** Milliseconds of one run of the tests after the fix. */
  readonly testMs: number;
}

interface Scene {
  readonly runtime: SandboxRuntime;
  readonly image: string;
  /** Runs of the tests in each state. */
  readonly runs: number;
  /** The Harbor directory's files, given the lists. */
  readonly harbor: (tests: ExpectedTests) => readonly HarborFile[];
  readonly signal: AbortSignal;
}

/** @throws InputError when the tests don't tell before from after, BoundaryError("verifier") when the graders disagree */
export async function verifyTask(task: PreparedTask, scene: Scene): Promise<VerifiedTask> {
  return withSandbox(task, scene, async (before) =>
    withSandbox(task, scene, async (after) => {
      await applyFix(after, task, scene.signal);
      const was = await runTests(before, task, scene);
      const is = await runTests(after, task, scene);
      const tests = expectedTests(task.entry.id, was.runs, is.runs);
      for (const [sandbox, wanted, when] of [
        [before, 0, "before"],
        [after, 1, "after"],
      ] as const) {
        const reward = await harborReward(sandbox, task, scene, tests);
        if (reward !== wanted) throw failed(task, `the Harbor test gives ${reward} ${when} the fix`);
      }
      return { tests, testMs: is.testMs };
    }),
  );
}

async function runTests(
  sandbox: Sandbox,
  task: PreparedTask,
  scene: Scene,
): Promise<{ readonly runs: readonly TestRun[]; readonly testMs: number }> {
  const script = new TextEncoder().encode(gradedScript(task));
  const runs: TestRun[] = [];
  let testMs = 0;
  for (let run = 0; run < scene.runs; run += 1) {
    const { log, durationMs } = await runBash(sandbox, task, { stdin: script }, scene.signal);
    const said = readTestLog(log, logParsers[task.entry.log], null);
    if (said.kind !== "results") throw failed(task, `its tests gave no results (${said.kind}): ${log.slice(-1500)}`);
    runs.push(said.statuses);
    testMs = durationMs;
  }
  return { runs, testMs };
}

async function applyFix(sandbox: Sandbox, task: PreparedTask, signal: AbortSignal): Promise<void> {
  const command = ["git", "apply", "--whitespace=nowarn", "-"];
  const stdin = new TextEncoder().encode(task.patch);
  const applied = await sandbox.exec({ command, stdin, timeoutMs: 30_000 }, signal);
  if (applied.exitCode === 0) return;
  throw failed(task, `its fix does not apply: ${new TextDecoder().decode(applied.stderr.head)}`);
}

const Reward = z.object({ reward: z.number() });

async function harborReward(sandbox: Sandbox, task: PreparedTask, scene: Scene, tests: ExpectedTests): Promise<number> {
  for (const file of scene.harbor(tests)) {
    if (!file.path.startsWith("tests/")) continue;
    const mode = file.executable ? 0o755 : 0o644;
    await sandbox.writeFile(`/${file.path}`, new TextEncoder().encode(file.text), { mode }, scene.signal);
  }
  await runBash(sandbox, task, { file: "/tests/test.sh" }, scene.signal);
  const path = "/logs/verifier/reward.json";
  const bytes = await sandbox.readFile(path, { maxBytes: 10_000 }, scene.signal);
  return Reward.parse(JSON.parse(new TextDecoder().decode(bytes))).reward;
}

async function runBash(
  sandbox: Sandbox,
  task: PreparedTask,
  what: { readonly stdin: Uint8Array } | { readonly file: string },
  signal: AbortSignal,
): Promise<{ log: string; durationMs: number }> {
  const timeoutMs = task.entry.timeoutS * 1000;
  const request = "file" in what ? { command: ["bash", what.file] } : { command: ["bash", "-s"], stdin: what.stdin };
  const result = await sandbox.exec({ ...request, timeoutMs, maxOutputBytes: 16 * 1024 * 1024 }, signal);
  if (result.timedOut) throw failed(task, `its tests did not end within ${task.entry.timeoutS} s`);
  const { head, gapBytes } = result.stdout;
  if (gapBytes > 0) throw failed(task, "its tests print more than is read");
  return { log: new TextDecoder().decode(head), durationMs: result.durationMs };
}

/** A fresh sandbox, closed whatever happens. */
async function withSandbox<T>(
  task: PreparedTask,
  { runtime, image, runs, signal }: Scene,
  use: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const spec = sandboxSpec(image, 2 * (runs + 1) * task.entry.timeoutS * 1000 + 120_000);
  const sandbox = await runtime.open(spec, signal);
  try {
    return await use(sandbox);
  } finally {
    await runtime.close(spec.id, new AbortController().signal);
  }
}

const sandboxSpec = (image: string, lifeMs: number): SandboxSpec => ({
  id: `sbx_${randomBytes(10).toString("hex")}`,
  image: { kind: "name", name: image },
  resources: { cpus: 2, memoryMb: 2048, pids: 512, diskMb: null },
  network: { mode: "none" },
  workdir: repositoryFolder,
  environment: {},
  services: [],
  labels: { purpose: "task-build" },
  mounts: [],
  leaseMs: lifeMs,
  maxLifeMs: lifeMs,
});

const failed = (task: PreparedTask, message: string): BoundaryError =>
  new BoundaryError("verifier", "task_build", `${task.entry.id}: ${message}`);
