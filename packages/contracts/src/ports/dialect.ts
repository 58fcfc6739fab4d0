/** A dialect turns calls into the text a model family writes, and back. Pure. */
import type { JsonObject, ToolCall } from "../segments.ts";

export interface ParsedTurn {
  /** Text outside calls, reasoning included. */
  readonly content: string;
  readonly calls: readonly ToolCall[];
  /** What the model must be told when its text held a malformed call; null when all is well. */
  readonly error: string | null;
}
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}
export interface Dialect {
  readonly name: string;
  /** Text for the system message that explains tools and format; "" when the policy is trained without it. */
  describeTools(tools: readonly ToolSpec[]): string;
  renderCalls(calls: readonly { readonly name: string; readonly arguments: JsonObject }[]): string;
  /** Never throws. One bad call never hides the good ones. */
  parse(text: string, tools: readonly ToolSpec[]): ParsedTurn;
  renderResult(call: ToolCall, output: string): string;
}
