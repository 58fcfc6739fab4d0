/**
 * First prompts, encoded once for the rollouts of a group: they have the same messages, and encoding 30k tokens costs more
 * than the twenty turns that follow. Invariant: the same tokens as `firstPrompt`; a bounded number is kept, the ones used last.
 */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { firstPrompt, type Opening } from "./render-conversation.ts";

/** Groups under way at once, as a rule; 64 openings of 32k tokens take 8 MB. */
const maxKept = 64;

const keptOf = new WeakMap<Tokenizer, Map<string, Uint32Array>>();

export function openingTokens(tokenizer: Tokenizer, opening: Opening): Uint32Array {
  const { messages, tools, dialect, describeTools } = opening;
  const key = JSON.stringify([dialect.name, describeTools ? tools : null, messages]);
  const kept = keptOf.get(tokenizer) ?? new Map<string, Uint32Array>();
  keptOf.set(tokenizer, kept);
  const tokens = kept.get(key) ?? Uint32Array.from(firstPrompt(tokenizer, opening));
  // Last in the map is last used.
  kept.delete(key);
  kept.set(key, tokens);
  for (const oldest of kept.keys()) {
    if (kept.size <= maxKept) break;
    kept.delete(oldest);
  }
  return tokens;
}
