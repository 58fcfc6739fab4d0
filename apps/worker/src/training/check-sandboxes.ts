/** Before a run's model is made: can the sandboxes that its tasks need be opened here at all? */
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import { resettingRuntimes } from "@rolldeck/contracts/run-config";
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import { dispatcherNamed } from "@rolldeck/dispatch/registry";
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
    checkResets(context, task, config);
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

/** @throws InputError where the run is to keep environments and they can't be reset */
function checkResets({ sandboxes }: WorkerContext, task: SandboxedTask, config: ClaimedPrepare["config"]): void {
  if (!dispatcherNamed(config.dispatcher.name)?.keepsEnvironments) return;
  const name = sandboxes.runtimeNameOf(task, config);
  if (resettingRuntimes.includes(name)) return;
  const message = `${config.dispatcher.name} resets environments, and ${name} sandboxes can't be reset; use pipeline, or one of ${resettingRuntimes.join(", ")}`;
  throw new InputError([{ path: "dispatcher.name", message }]);
}

type SandboxedTask = Parameters<WorkerContext["sandboxes"]["runtimeOf"]>[0];

const ailmentOf = async (
  { sandboxes }: WorkerContext,
  task: SandboxedTask,
  config: ClaimedPrepare["config"],
  signal: AbortSignal,
): Promise<string | null> => sandboxes.runtimeOf(task, config).ailment(signal);
