import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { renderLiteral } from "./render-literal.ts";

/** Tools as the Qwen family is shown them: one JSON object a line between tags. */
export function toolLines(tools: readonly ToolSpec[]): string {
  const lines = tools.map(({ name, description, parameters }) =>
    renderLiteral({ type: "function", function: { name, description, parameters } }, "json"),
  );
  return ["<tools>", ...lines, "</tools>"].join("\n");
}
