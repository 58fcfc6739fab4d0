import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";

/** What the model is told; the rest it learns. Each character is a token of a byte-level policy. */
export const searchSmallMessages = (name: string): ChatMessage[] => [{ role: "user", content: `find ${name}` }];
