import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall, ToolResult } from "@rolldeck/contracts/segments";
import { checkArguments } from "./check-arguments.ts";
import { badArguments, unknownTool } from "./feedback.ts";
import { makeSafeOutput } from "./make-safe-output.ts";
import type { Rollout } from "./rollout.ts";

/**
 * One call, from check to safe output. A made-up tool, arguments that don't fit and a tool's own failure are observations:
 * no model output is an internal error.
 * @throws what the tool port throws, unless it is a BoundaryError("tool")
 */
export async function runCall({ spec, ports, signal }: Rollout, call: ToolCall): Promise<ToolResult> {
  const startedAt = ports.now();
  const outcome = await tryCall({ spec, ports, signal }, call);
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

async function tryCall({ spec, ports, signal }: Omit<Rollout, "history">, call: ToolCall): Promise<ToolOutcome> {
  const tool = spec.tools.find(({ name }) => name === call.name);
  if (tool === undefined) return failure("unknown_tool", unknownTool(call, spec.tools));
  const checked = checkArguments(call.arguments, tool.parameters);
  if (!checked.ok) return failure("bad_arguments", badArguments(call, checked.problems, tool));
  try {
    return await ports.callTool({ ...call, arguments: checked.arguments }, signal);
  } catch (error) {
    if (error instanceof BoundaryError && error.boundary === "tool")
      return failure(error.code, `error: ${error.message}`);
    throw error;
  }
}

const failure = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });
