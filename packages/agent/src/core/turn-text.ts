import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { sampledText } from "./render-conversation.ts";

/**
 * A sampled turn as its dialect reads it. Some templates end the prompt with an open thinking mark, so that the sample begins
 * inside the thinking: the mark is put back, else thinking that never ends would be read as the answer.
 */
export function turnText(tokenizer: Tokenizer, dialect: Dialect, tokens: readonly number[]): string {
  const text = sampledText(tokenizer, tokens);
  const opened = dialect.assembled ? "" : openedThinking(tokenizer);
  return text.trimStart().startsWith(opened.trimEnd()) ? text : opened + text;
}

/** The same for every turn of every rollout that shares a tokenizer. */
const known = new WeakMap<Tokenizer, string>();

/** What the generation prompt ends with, from an open thinking mark on; "" for most templates. */
function openedThinking(tokenizer: Tokenizer): string {
  const found = known.get(tokenizer);
  if (found !== undefined) return found;
  const prompt = tokenizer.decode(tokenizer.render([{ role: "user", content: "x" }], { generationPrompt: true }));
  const opened = /(?:<think>|\[THINK\])\s*$/.exec(prompt)?.[0] ?? "";
  known.set(tokenizer, opened);
  return opened;
}
