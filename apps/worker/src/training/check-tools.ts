/** Before a run's model is made: do the MCP servers that its config names give the tools it asks for? */
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import { rolloutTools } from "../rollout-tools.ts";
import type { WorkerContext } from "../worker-context.ts";

/**
 * @throws InputError for what can't become right by itself: no such server, no such tool, two tools of one name; the
 *   BoundaryError of a server that does not answer, which is tried again
 */
export async function checkTools(context: WorkerContext, claimed: ClaimedPrepare, signal: AbortSignal): Promise<void> {
  const { config } = claimed;
  if (config.agent.mcp.length === 0 || claimed.servingVersion !== null) return;
  // What runs in a sandbox is met when the first one is there.
  const mcp = config.agent.mcp.filter(({ server }) => !context.mcp.isBoxed(server));
  for (const task of await context.openedTasks.all(config)) {
    const beside = { ...config, agent: { ...config.agent, mcp: task.sandbox === "none" ? config.agent.mcp : mcp } };
    try {
      const { close } = await rolloutTools(context, task, beside, signal);
      await close();
    } catch (error) {
      if (!(error instanceof BoundaryError) || error.retryable) throw error;
      throw new InputError([{ path: "agent.mcp", message: error.message }]);
    }
  }
}
