/** How an answer of a chat server becomes the text that the run's dialect reads. Given by whoever knows the dialects. */
export interface ChatText {
  /** `choices[0].message` of an answer that was not streamed. @throws for what is no message */
  whole(message: unknown): string;
  /** Takes each `choices[0].delta` of a stream. Both give the same text for the same answer. */
  stream(toolNames: ReadonlySet<string>): { push(delta: unknown): void; text(): string };
}
