/** A tool: everything an agent does is a call of one. */
import type { JsonObject } from "../segments.ts";

export interface ToolContext {
  /** The task instance's own state that tools act on (`sandbox: none` tasks keep it here). */
  readonly instance: JsonObject;
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}
export interface ToolOutcome {
  readonly output: string;
  readonly error?: { readonly code: string; readonly message: string };
  /** Present when this call ends the rollout. */
  readonly finalAnswer?: string;
}
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments object. */
  readonly parameters: JsonObject;
  /** May run twice without harm: a rollout can be continued across an open call. */
  readonly idempotent: boolean;
  call(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}
