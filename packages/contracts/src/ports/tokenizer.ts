/** A tokenizer with its chat template, loaded from a local folder. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
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
  render(messages: readonly ChatMessage[], options: { readonly generationPrompt: boolean }): number[];
}
