/**
 * What happens before the agent's turn: the folders of the run's logs, files and set-up of the step, health checks. A failure here is
 * the sandbox's: the agent has not had its turn.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { packStepFolder } from "./grade-step.ts";
import type { HarborTask } from "./harbor-task.ts";
import { lastWords, runScript } from "./in-sandbox.ts";
import type { TaskStep } from "./task-file.ts";
import { waitUntilHealthy } from "./waiting.ts";

const setUpTimeoutMs = 360_000;
const now = (): number => performance.now();

/** @throws BoundaryError("sandbox") */
export async function makeLogFolders(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const script =
    "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts";
  await runScript(sandbox, script, "making the folders of logs", { user: "root" }, signal);
}

/** Of a sandbox that was just opened. @throws BoundaryError("sandbox" | "infrastructure") */
export async function startTask(task: HarborTask, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  await makeLogFolders(sandbox, signal);
  const { healthcheck } = task.file.environment;
  if (healthcheck !== null) await waitUntilHealthy(healthcheck, sandbox, now, signal);
}

/** @throws BoundaryError("sandbox" | "infrastructure") */
export async function startStep(
  task: HarborTask,
  step: TaskStep,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  if (step.name !== null) {
    const workdir = await packStepFolder(task, step.name, "workdir");
    if (workdir !== null) await bring(workdir, step.name, sandbox, signal);
  }
  if (step.healthcheck !== null) await waitUntilHealthy(step.healthcheck, sandbox, now, signal);
}

/** Files of a step, and its `setup.sh`, which sees them in the working directory. */
async function bring(workdir: Uint8Array, step: string, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  await sandbox.putArchive(sandbox.workdir, workdir, {}, signal);
  const command = ["/bin/sh", "-c", "[ ! -f setup.sh ] || exec bash setup.sh"];
  const result = await sandbox.exec({ command, cwd: sandbox.workdir, timeoutMs: setUpTimeoutMs }, signal);
  if (result.exitCode === 0) return;
  const how = result.timedOut ? "was not done in time" : `exited with ${result.exitCode}`;
  throw new BoundaryError("sandbox", "set_up_failed", `setup.sh of step ${step} ${how}: ${lastWords(result)}`);
}
