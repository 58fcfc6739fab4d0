/** A dialect turns calls into the text a model family writes, and back. Pure. */
import type { JsonObject, ToolCall } from "../segments.ts";

export interface ParsedTurn {
  /** Text outside calls and reasoning. */
  readonly content: string;
  /** Text inside the family's thinking marks; "" when there is none. A call inside it is not a call. */
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** What the model must be told when its text held a malformed call; null when all is well. */
  readonly error: string | null;
  /** One sentence for each call text that a stated, cautious rule mended; the tokens stay as sampled. */
  readonly repairs: readonly string[];
}
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}
export interface NamedCall {
  readonly name: string;
  readonly arguments: JsonObject;
}
/** An assistant turn by its parts, as demonstrations and round-trip tests hold it. */
export interface TurnParts {
  readonly reasoning?: string;
  readonly content?: string;
  readonly calls: readonly NamedCall[];
}
export interface Dialect {
  readonly name: string;
  /** Role of the message that carries a result: most families have "tool", the paper's own format answers as the user. */
  readonly resultRole: "tool" | "user";
  /** A turn's text is put together by the adapter of a server that hides its tokens; what the prompt ended with is no part of it. */
  readonly assembled?: boolean;
  /** Does a text hold this format's marks? Runs of another dialect use it to say that the model writes the wrong format. */
  looksLike(text: string): boolean;
  /** Text for the system message that explains tools and format; "" when the policy is trained without it. */
  describeTools(tools: readonly ToolSpec[]): string;
  /** @throws RangeError for a call that the format can't write */
  renderCalls(calls: readonly NamedCall[]): string;
  /** A call in a message to the model, where it is not shown as `renderCalls` writes it. Never throws. */
  showCall?(call: NamedCall): string;
  /** Reasoning, content and calls in the family's order; `parse` gives the same parts back. */
  renderTurn(turn: TurnParts): string;
  /** Never throws. One bad call never hides the good ones. */
  parse(text: string, tools: readonly ToolSpec[]): ParsedTurn;
  renderResult(call: ToolCall, output: string): string;
}
