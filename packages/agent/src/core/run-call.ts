import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ContextChange, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall, ToolResult } from "@rolldeck/contracts/segments";
import { agentView } from "./agent-view.ts";
import { checkArguments } from "./check-arguments.ts";
import { badArguments, unknownTool } from "./feedback.ts";
import { limitOutput } from "./limit-output.ts";
import type { Rollout } from "./rollout.ts";
import type { Thread } from "./thread.ts";

/** What a call gave back, and what it wants changed. */
export interface CallEnd {
  readonly result: ToolResult;
  readonly context: ContextChange | null;
}
/** How a sub-agent's work is done: handed in by the loop, which this file is a part of. */
export type Delegate = (call: ToolCall) => Promise<ToolOutcome | null>;

/**
 * One call, from check to safe output. A made-up tool, arguments that don't fit and a tool's own failure are observations:
 * no model output is an internal error. A call that failed changes no context.
 * @throws what the tool port throws, unless it is a BoundaryError("tool")
 */
export async function runCall(rollout: Rollout, thread: Thread, call: ToolCall, delegate: Delegate): Promise<CallEnd> {
  const { spec, ports, signal } = rollout;
  const startedAt = ports.now();
  const outcome = await tryCall(rollout, thread, call, delegate);
  signal.throwIfAborted();
  const { error = null, finalAnswer, context } = outcome;
  const whole = outcome.output === "" && error !== null ? `error: ${error.message}` : outcome.output;
  const { text, changed, ...limited } = limitOutput(spec, whole);
  // A tool that kept only the ends of its output knows its size.
  const wholeBytes = outcome.wholeBytes ?? limited.wholeBytes;
  // What was cleaned of terminal codes can be read as it came, too.
  if (changed) {
    const turn = thread.last?.turn ?? 0;
    await ports.saveArtifact?.({ turn, index: call.index, name: "output.txt", text: whole });
  }
  return {
    context: error === null ? (context ?? null) : null,
    result: {
      index: call.index,
      output: text,
      error,
      durationMs: Math.max(0, ports.now() - startedAt),
      ...(wholeBytes === null ? {} : { wholeBytes }),
      ...(finalAnswer === undefined ? {} : { finalAnswer }),
    },
  };
}

async function tryCall(rollout: Rollout, thread: Thread, call: ToolCall, delegate: Delegate): Promise<ToolOutcome> {
  const { spec, ports, signal } = rollout;
  const { tools } = thread.plan;
  const tool = tools.find(({ name }) => name === call.name);
  if (tool === undefined) return failure("unknown_tool", unknownTool(call, tools));
  const checked = checkArguments(call.arguments, tool.parameters);
  if (!checked.ok) return failure("bad_arguments", badArguments(call, checked.problems, tool));
  const fitting = { ...call, arguments: checked.arguments };
  try {
    return (await delegate(fitting)) ?? (await ports.callTool(fitting, agentView(spec, thread), signal));
  } catch (error) {
    if (error instanceof BoundaryError && error.boundary === "tool")
      return failure(error.code, `error: ${error.message}`);
    throw error;
  }
}

export const failure = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });
