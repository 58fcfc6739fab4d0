/**
 * The tools of one rollout: its task's, and those of the MCP servers that the run's config names. Invariants: no two have one
 * name; what was opened for the rollout is closed with it; a rollout whose tools kept something in a process that is gone is not
 * continued.
 */
import type { Trajectory } from "@rolldeck/agent/core/trajectory";
import { refuseDoubles } from "@rolldeck/agent/io/mcp/mount-tools";
import type { McpServers } from "@rolldeck/agent/io/mcp/servers";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { taskTools } from "./rollout-task.ts";

export interface RolloutTools {
  readonly tools: readonly Tool[];
  /** Never throws; ends processes that were the rollout's alone. */
  close(): Promise<void>;
}

/** @throws BoundaryError("infrastructure") when the server has not, or can't reach, what the config names */
export async function rolloutTools(
  sources: { readonly tools: Readonly<Record<string, Tool>>; readonly mcp: Pick<McpServers, "mount"> },
  task: Task,
  config: RunConfig,
  signal: AbortSignal,
  sandbox: Sandbox | null = null,
): Promise<RolloutTools> {
  const own = taskTools(sources.tools, task);
  if (config.agent.mcp.length === 0) return { tools: own, close: async () => {} };
  const mounted = await sources.mcp.mount(config.agent.mcp, signal, sandbox);
  const tools = [...own, ...mounted.tools];
  try {
    refuseDoubles(tools);
  } catch (error) {
    await mounted.close();
    throw error;
  }
  return { tools, close: mounted.close };
}

/** The first tool of which the trajectory has a call whose effect went with the process; null when there is none. */
export function lostState(trajectory: Pick<Trajectory, "turns">, tools: readonly Tool[]): string | null {
  const stateful = new Set(tools.filter((tool) => tool.stateful).map(({ name }) => name));
  if (stateful.size === 0) return null;
  for (const { calls } of trajectory.turns) for (const { name } of calls) if (stateful.has(name)) return name;
  return null;
}
