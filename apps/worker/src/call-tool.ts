/**
 * One tool call. Whatever the tool does, the model gets an observation: an unknown name, a time-out and a thrown error are
 * errors to the model, not endings. Only a lost sandbox, or the stage's own abort, gets through.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { AgentView, Tool, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject, ToolCall } from "@rolldeck/contracts/segments";
import { abortable } from "./wait-for.ts";

export interface CallScope {
  readonly instance: JsonObject;
  readonly agent: AgentView;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** @throws BoundaryError("sandbox") when the place the tool acts in is gone; the signal's reason when it aborts. */
export async function callTool(tools: readonly Tool[], call: ToolCall, scope: CallScope): Promise<ToolOutcome> {
  const tool = tools.find(({ name }) => name === call.name);
  if (tool === undefined) {
    const names = tools.map(({ name }) => name).join(", ");
    return failed("unknown_tool", `there is no tool named ${JSON.stringify(call.name.slice(0, 64))}; tools: ${names}`);
  }
  const timeout = AbortSignal.timeout(scope.timeoutMs);
  const signal = AbortSignal.any([scope.signal, timeout]);
  try {
    const deadlineMs = Date.now() + scope.timeoutMs;
    return await abortable(
      tool.call(call.arguments, { instance: scope.instance, agent: scope.agent, signal, deadlineMs }),
      signal,
    );
  } catch (error) {
    scope.signal.throwIfAborted();
    if (error instanceof BoundaryError && error.boundary !== "tool") throw error;
    if (timeout.aborted) return failed("timeout", `timed out after ${scope.timeoutMs / 1000} s`);
    return failed("tool_error", error instanceof Error ? error.message : String(error));
  }
}

const failed = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });
