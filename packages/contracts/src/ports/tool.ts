/** A tool: everything an agent does is a call of one. Stateless, sandbox-changing and context-changing tools share this port. */
import type { JsonObject } from "../segments.ts";
import type { Sandbox } from "./sandbox.ts";
import type { ChatMessage } from "./tokenizer.ts";

/** What an agent's tools may know of its own history. Read-only: a tool says in its outcome what it wants changed. */
export interface AgentView {
  readonly turn: number;
  readonly maxTurns: number;
  /** Tokens of the prompt and the sample of the turn that made this call. */
  readonly contextTokens: number;
  readonly maxContextTokens: number;
  /** Names of this agent's tools, this call's included; absent where a caller does not tell. */
  readonly tools?: readonly string[];
  /** Ended calls of this agent, oldest first, those before a context change included; this call is not among them. */
  readonly calls: readonly { readonly name: string; readonly arguments: JsonObject; readonly failed: boolean }[];
}
export interface ToolContext {
  /** The task instance's own state that tools act on (`sandbox: none` tasks keep it here). */
  readonly instance: JsonObject;
  readonly agent: AgentView;
  /**
   * One object for all calls of a rollout on this worker: what a tool keeps between calls hangs on it (in a WeakMap) and is gone
   * with it. Absent: `instance` stands for it.
   */
  readonly rollout?: object;
  /** Aborts when this worker's part of the rollout is over: what a tool keeps open (a shell, a connection) it lets go then. */
  readonly ended?: AbortSignal;
  /** The rollout's sandbox; absent where its task has none. */
  readonly sandbox?: Sandbox;
  readonly signal: AbortSignal;
  /** Milliseconds of the process's wall clock. */
  readonly deadlineMs: number;
}
/**
 * How the calling agent's next prompt is made.
 * restart: from these messages alone (tool descriptions join them as at the start).
 * summary: the opening messages, then this text as a user message, then the newest `keepTurns` turns with what followed them.
 * drop-observations: as it is, but all observations older than the newest `keep` give way to a short placeholder.
 */
export type ContextChange =
  | { readonly kind: "restart"; readonly messages: readonly ChatMessage[] }
  | { readonly kind: "summary"; readonly text: string; readonly keepTurns: number }
  | { readonly kind: "drop-observations"; readonly keep: number };

export interface ToolOutcome {
  readonly output: string;
  /** UTF-8 bytes of all the tool gave, where `output` is already a cut version of it. */
  readonly wholeBytes?: number;
  readonly error?: { readonly code: string; readonly message: string };
  /** Present when this call ends the rollout (or the sub-agent). */
  readonly finalAnswer?: string;
  readonly context?: ContextChange;
}
/** A sub-agent's work: its own thread of the same trajectory; its final answer is the call's output. */
export interface Delegation {
  readonly messages: readonly ChatMessage[];
  /** Names from the rollout's own tools. */
  readonly tools: readonly string[];
  readonly maxTurns: number;
}
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments object. */
  readonly parameters: JsonObject;
  /** May run twice without harm: a rollout can be continued across an open call. */
  readonly idempotent: boolean;
  /** Keeps something in this process between calls: a rollout that called it can't be continued elsewhere. */
  readonly stateful?: boolean;
  call(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
  /** Present on tools that hand the call to a sub-agent; `call` is then not used. Pure and deterministic. */
  delegate?(args: JsonObject, context: Pick<ToolContext, "instance" | "agent">): Delegation;
}
