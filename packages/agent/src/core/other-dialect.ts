import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import { dialects } from "./registry.ts";

/**
 * The call format that a text without readable calls is written in, when it is not the run's own: the model was told, or
 * trained on, another one. Thinking doesn't count.
 * @returns the dialect's name; null when the text holds the run's own marks, or none
 */
export function otherDialect(text: string, dialect: Dialect): string | null {
  const answer = afterThinking(text);
  if (dialect.looksLike(answer)) return null;
  const others: readonly Dialect[] = Object.values(dialects);
  return others.find((other) => other.name !== dialect.name && other.looksLike(answer))?.name ?? null;
}

function afterThinking(text: string): string {
  let rest = text;
  for (const mark of ["think>", "THINK]"]) {
    const [open, close] = mark === "think>" ? ["<think>", "</think>"] : ["[THINK]", "[/THINK]"];
    const closed = rest.lastIndexOf(close);
    if (rest.lastIndexOf(open) > closed) return "";
    if (closed !== -1) rest = rest.slice(closed + close.length);
  }
  return rest;
}
