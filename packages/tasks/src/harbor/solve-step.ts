/** The author's own solution, run as an agent's work would be: what `rolldeck task check` grades as the oracle. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { packStepFolder } from "./grade-step.ts";
import type { HarborTask } from "./harbor-task.ts";
import { lastWords, runScript } from "./in-sandbox.ts";
import { fillInAll, type OperatorVariables } from "./operator-variables.ts";
import type { TaskStep } from "./task-file.ts";
import { packFolder } from "./task-files.ts";

const maxMs = 3 * 3_600_000;

/** @throws BoundaryError("infrastructure", "no_solution" | "solution_failed"), BoundaryError("sandbox") */
export async function solveStep(
  task: HarborTask,
  step: TaskStep,
  variables: OperatorVariables,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  const own = step.name === null ? null : await packStepFolder(task, step.name, "solution");
  const tar = own ?? (await packFolder(`${task.folder}/solution`, task.folder, task.marks.solution));
  const where = step.name === null ? "solution/solve.sh" : `steps/${step.name}/solution/solve.sh`;
  if (tar === null) throw new BoundaryError("infrastructure", "no_solution", `${task.name} holds no ${where}`);
  await sandbox.putArchive("/solution", tar, {}, signal);
  const result = await sandbox.exec(
    {
      command: ["bash", "/solution/solve.sh"],
      environment: { DEBIAN_FRONTEND: "noninteractive", ...fillInAll(task.file.solutionVariables, variables) },
      timeoutMs: step.agentTimeoutMs ?? maxMs,
    },
    signal,
  );
  await runScript(sandbox, "rm -rf /solution", "taking the solution away", { user: "root" }, signal);
  // How it exits says nothing, the tests do; but one that was ended did not do its work.
  if (result.timedOut || result.flooded) {
    throw new BoundaryError("infrastructure", "solution_failed", `${where} was not done in time: ${lastWords(result)}`);
  }
}
