/** The quickstart policy's vocabulary: ids 0–255 are bytes, then four specials. */
export const specials = ["<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"] as const;
export const endToken = 259;
export const vocabularySize = 260;

export function encodeBytes(text: string): number[] {
  return [...Buffer.from(text, "utf8")];
}

/** Specials by name; bytes that are not UTF-8 become U+FFFD. */
export function decodeTokens(tokens: readonly number[]): string {
  let text = "";
  let bytes: number[] = [];
  const flush = (): void => {
    text += Buffer.from(bytes).toString("utf8");
    bytes = [];
  };
  for (const token of tokens) {
    if (token < 256) {
      bytes.push(token);
      continue;
    }
    flush();
    text += specials[token - 256] ?? `<|${token}|>`;
  }
  flush();
  return text;
}
