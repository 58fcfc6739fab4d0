/**
 * One tool call. Whatever the tool does, the model gets an observation with a reason: an unknown name, a time-out, anything thrown
 * and an outcome that is none are errors to the model, not endings. Only a lost sandbox or other infrastructure, or the
 * stage's own abort, gets through. Nothing of a call outlives it here: no timer, no listener.
 */

import { setMaxListeners } from "node:events";
import { headWithin } from "@rolldeck/agent/core/cut-text";
import { decodeOutput } from "@rolldeck/agent/core/decode-output";
import { makeSafeOutput } from "@rolldeck/agent/core/make-safe-output";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { AgentView, Tool, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject, ToolCall } from "@rolldeck/contracts/segments";
import { readOutcome } from "./read-outcome.ts";

export interface CallScope {
  readonly instance: JsonObject;
  readonly agent: AgentView;
  /** One object for all calls of this rollout; absent: `instance`. */
  readonly rollout?: object;
  /** Aborts when this worker's part of the rollout is over. */
  readonly ended?: AbortSignal;
  /** Absent where the task has none. */
  readonly sandbox?: Sandbox;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** @throws BoundaryError when what failed is not the tool; the signal's reason when it aborts. */
export async function callTool(tools: readonly Tool[], call: ToolCall, scope: CallScope): Promise<ToolOutcome> {
  const tool = tools.find(({ name }) => name === call.name);
  if (tool === undefined) {
    const names = tools.map(({ name }) => name).join(", ");
    return failed(
      "unknown_tool",
      `there is no tool named ${JSON.stringify(headWithin(call.name, 64))}; tools: ${names}`,
    );
  }
  scope.signal.throwIfAborted();
  const limit = new AbortController();
  // A tool may wait for any number of things at once: files of a tree that are read for its index.
  setMaxListeners(0, limit.signal);
  const onAbort = () => limit.abort(scope.signal.reason);
  scope.signal.addEventListener("abort", onAbort, { once: true });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    limit.abort(new Error("timed out"));
  }, scope.timeoutMs);
  try {
    const { instance, agent, rollout = instance, sandbox, ended } = scope;
    const deadlineMs = Date.now() + scope.timeoutMs;
    const own = { ...(sandbox && { sandbox }), ...(ended && { ended }) };
    const context = { instance, agent, rollout, signal: limit.signal, deadlineMs, ...own };
    return readOutcome(await orAborted(Promise.resolve(tool.call(call.arguments, context)), limit.signal));
  } catch (error) {
    scope.signal.throwIfAborted();
    if (error instanceof BoundaryError && error.boundary !== "tool") throw error;
    if (timedOut) return failed("timeout", `timed out after ${scope.timeoutMs / 1000} s`);
    return failed(error instanceof BoundaryError ? error.code : "tool_error", describe(error));
  } finally {
    clearTimeout(timer);
    scope.signal.removeEventListener("abort", onAbort);
  }
}

const failed = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });

/** Bytes of a failure's message that anyone gets to see. */
const maxMessageBytes = 2048;

/** What was thrown, which may be anything, in words. */
function describe(thrown: unknown): string {
  return makeSafeOutput(thrownText(thrown), maxMessageBytes) || "the tool failed without saying why";
}

function thrownText(thrown: unknown): string {
  if (thrown instanceof Error) return typeof thrown.message === "string" ? thrown.message : thrown.name;
  if (thrown instanceof Uint8Array) return decodeOutput(thrown);
  if (thrown === undefined || thrown === null) return "";
  try {
    return typeof thrown === "object" ? (JSON.stringify(thrown) ?? "") : String(thrown);
  } catch {
    // Circular, or with a getter that throws itself: nothing more can be said of it.
    return "the tool threw something that is no error";
  }
}
