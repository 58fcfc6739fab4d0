/**
 * Calls of Llama 3.2 and 4 as a Python list, which Llama 4 puts between `<|python_start|>` and `<|python_end|>`. Rules as in
 * `readCallList`. The marks may be missing or stand alone; they are never content.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { pythonic, renderCallList, signatures } from "./pythonic.ts";
import { readCallList } from "./read-call-list.ts";
import { renderTurn } from "./render-turn.ts";
import { type CallFormat, type CallsRead, scanTurn, thinkTags } from "./scan-turn.ts";

export const llamaPythonic: Dialect = {
  name: "llama-pythonic",
  resultRole: "tool",
  looksLike: (text) => pythonic.looksLike(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools, ? marks what may be left out:",
      ...signatures(tools),
      "When you call tools, answer with nothing but a Python list of the calls with named arguments:",
      '[tool_name(parameter="value"), other_tool(parameter=1)]',
    ].join("\n"),
  renderCalls: renderCallList,
  renderTurn: (turn) => renderTurn(llamaPythonic, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = {
  thinking: [thinkTags],
  start:
    /(?:<\|python_(?:start|tag)\|>\s*|(?<![\p{L}\p{N}_)\]]))\[\s*(?=[\p{L}_][\p{L}\p{N}_.-]*\s*\()|<\|python_(?:start|tag|end)\|>/gu,
  read: (text, { index, 0: mark }) => readMarked(text, index, mark),
};

function readMarked(text: string, index: number, mark: string): CallsRead {
  const from = index + mark.length;
  if (!mark.includes("[")) return { end: from, calls: [], problems: [] };
  const read = readCallList(text, from);
  const after = /\s*<\|python_end\|>/y;
  after.lastIndex = read.end;
  return after.test(text) ? { ...read, end: after.lastIndex } : read;
}
