/** A tokenizer with its chat template, loaded from a local folder. */
import type { JsonObject } from "../segments.ts";
import type { ToolSpec } from "./dialect.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  /** Assistant only: thinking, kept apart from content; templates read it as `reasoning_content`. */
  readonly reasoning?: string;
  /** Assistant only, for templates and servers that write calls themselves. An empty list counts as none. */
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: JsonObject }[];
  /** Tool only: the call it answers. */
  readonly toolCallId?: string;
  /** Tool only: the tool's name. */
  readonly name?: string;
}
export interface RenderOptions {
  readonly generationPrompt: boolean;
  /** For templates that describe tools themselves. */
  readonly tools?: readonly ToolSpec[];
  /** In place of what the tokenizer was loaded with; null = the template's own default. */
  readonly thinking?: boolean | null;
}
export interface Tokenizer {
  readonly vocabSize: number;
  readonly stopTokens: readonly number[];
  encode(text: string): number[];
  /** Never fails: bytes that are not UTF-8 become U+FFFD. */
  decode(tokens: readonly number[], options?: { readonly skipSpecial?: boolean }): string;
  /** The exact bytes-as-text of each token, for token views; special tokens by name. */
  tokenTexts(tokens: readonly number[]): string[];
  /** Tokens of the conversation; with `generationPrompt` it ends where the assistant starts to sample. */
  render(messages: readonly ChatMessage[], options: RenderOptions): number[];
}
