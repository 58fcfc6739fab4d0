import type { Dialect, TurnParts } from "@rolldeck/contracts/ports/dialect";

/** Thinking between the tags of the Qwen family, then words, then calls: the order of every dialect without its own. */
export function renderTurn(dialect: Pick<Dialect, "renderCalls">, { reasoning, content, calls }: TurnParts): string {
  const thought = reasoning ? `<think>\n${reasoning}\n</think>\n\n` : "";
  const parts = [content ?? "", calls.length > 0 ? dialect.renderCalls(calls) : ""];
  return thought + parts.filter((part) => part !== "").join("\n");
}
