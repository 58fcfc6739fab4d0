/** Before a run's model is made: can the sandboxes that its tasks need be opened here at all? */
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import type { WorkerContext } from "../worker-context.ts";

/**
 * @throws InputError for a kind that this server does not have; BoundaryError("sandbox", retryable) for one that does not answer now
 */
export async function checkSandboxes(
  context: WorkerContext,
  claimed: ClaimedPrepare,
  signal: AbortSignal,
): Promise<void> {
  const { config } = claimed;
  if (claimed.servingVersion !== null) return;
  for (const [at, task] of (await context.openedTasks.all(config)).entries()) {
    if (task.sandbox === "none") continue;
    const ailment = await ailmentOf(context, task, config, signal).catch((error: unknown) => {
      if (!(error instanceof BoundaryError) || error.code !== "no_runtime") throw error;
      const path = config.sandbox.runtime === null ? `taskSets[${at}].name` : "sandbox.runtime";
      throw new InputError([{ path, message: `${task.name} needs a sandbox: ${error.message}` }]);
    });
    if (ailment === null) continue;
    const message = `${task.name} needs a sandbox, and none can be opened: ${ailment}`;
    throw new BoundaryError("sandbox", "unavailable", message, { retryable: true });
  }
}

const ailmentOf = async (
  { sandboxes }: WorkerContext,
  task: Parameters<WorkerContext["sandboxes"]["runtimeOf"]>[0],
  config: ClaimedPrepare["config"],
  signal: AbortSignal,
): Promise<string | null> => sandboxes.runtimeOf(task, config).ailment(signal);
