import { BoundaryError } from "@rolldeck/contracts/errors";
import type { AgentView, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall, ToolResult } from "@rolldeck/contracts/segments";
import { checkArguments } from "./check-arguments.ts";
import { badArguments, unknownTool } from "./feedback.ts";
import type { History } from "./history.ts";
import { makeSafeOutput } from "./make-safe-output.ts";
import type { Rollout, RolloutSpec } from "./rollout.ts";
import { resultsInOrder } from "./trajectory.ts";

/**
 * One call, from check to safe output. A made-up tool, arguments that don't fit and a tool's own failure are observations:
 * no model output is an internal error.
 * @throws what the tool port throws, unless it is a BoundaryError("tool")
 */
export async function runCall(rollout: Rollout, call: ToolCall): Promise<ToolResult> {
  const { spec, ports, signal } = rollout;
  const startedAt = ports.now();
  const outcome = await tryCall(rollout, call);
  signal.throwIfAborted();
  const { error = null, finalAnswer } = outcome;
  const shown = outcome.output === "" && error !== null ? `error: ${error.message}` : outcome.output;
  return {
    index: call.index,
    output: makeSafeOutput(shown, spec.agent.maxOutputBytes),
    error,
    durationMs: Math.max(0, ports.now() - startedAt),
    ...(finalAnswer === undefined ? {} : { finalAnswer }),
  };
}

async function tryCall({ spec, ports, signal, history }: Rollout, call: ToolCall): Promise<ToolOutcome> {
  const tool = spec.tools.find(({ name }) => name === call.name);
  if (tool === undefined) return failure("unknown_tool", unknownTool(call, spec.tools));
  const checked = checkArguments(call.arguments, tool.parameters);
  if (!checked.ok) return failure("bad_arguments", badArguments(call, checked.problems, tool));
  try {
    return await ports.callTool({ ...call, arguments: checked.arguments }, agentView(spec, history), signal);
  } catch (error) {
    if (error instanceof BoundaryError && error.boundary === "tool")
      return failure(error.code, `error: ${error.message}`);
    throw error;
  }
}

const failure = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });

function agentView(spec: RolloutSpec, history: History): AgentView {
  const last = history.lastTurn;
  const calls = history.turns.flatMap((turn) =>
    turn.calls.flatMap((call, i) => {
      const result = resultsInOrder(turn)[i];
      return result ? [{ name: call.name, arguments: call.arguments, failed: result.error !== null }] : [];
    }),
  );
  return {
    turn: last?.turn ?? 0,
    maxTurns: spec.maxTurns,
    contextTokens: last === null ? 0 : last.promptTokens + last.sampledTokens,
    maxContextTokens: spec.agent.maxContextTokens,
    calls,
  };
}
