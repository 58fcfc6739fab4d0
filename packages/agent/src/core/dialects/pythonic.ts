/**
 * Calls as a Python list: `[get(key="a"), finish(answer="7")]`. Arguments are named and their values literals, Python's or
 * JSON's spelling of true, false and null alike. Text around the list is content. Nothing is repaired.
 */
import type { Dialect, NamedCall, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { describeParameters } from "./describe-parameters.ts";
import { readCallList } from "./read-call-list.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";
import { type CallFormat, scanTurn, thinkTags } from "./scan-turn.ts";

export const pythonic: Dialect = {
  name: "pythonic",
  resultRole: "tool",
  looksLike: (text) => /(?<![\p{L}\p{N}_)\]])\[\s*[\p{L}_][\p{L}\p{N}_.-]*\s*\(/u.test(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools:",
      ...signatures(tools),
      'Write calls as a list with named arguments, for example [tool_name(argument="value")], and nothing after it.',
    ].join("\n"),
  renderCalls: renderCallList,
  renderTurn: (turn) => renderTurn(pythonic, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = {
  thinking: [thinkTags],
  start: /(?<![\p{L}\p{N}_)\]])\[\s*(?=[\p{L}_][\p{L}\p{N}_.-]*\s*\()/gu,
  read: (text, match) => readCallList(text, match.index + match[0].length),
};

export const signatures = (tools: readonly ToolSpec[]): string[] =>
  tools.map(({ name, description, parameters }) => `- ${name}(${describeParameters(parameters)}): ${description}`);

export function renderCallList(calls: readonly NamedCall[]): string {
  const texts = calls.map(({ name, arguments: args }) => {
    const parts = Object.entries(args).map(([key, value]) => `${key}=${renderLiteral(value, "python")}`);
    return `${name}(${parts.join(", ")})`;
  });
  return `[${texts.join(", ")}]`;
}
