/**
 * Calls as JSON between tags: `<tool_call>{"name": "get", "arguments": {"key": "a"}}</tool_call>`. The JSON value itself
 * says where a call ends, so a tag inside a string is only text. Repairs, each said: the near misses of `mendRules` and of
 * `readCallObject`, and a missing closing tag where the next call begins or the text ends. Words between the object and the
 * closing tag are an error, since they may belong to it. A malformed call is told to the model and the next is still read.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { LiteralError, LiteralReader } from "./literal-reader.ts";
import { readCallObject } from "./read-call-object.ts";
import { readJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";
import { type CallFormat, type CallsRead, scanTurn, thinkTags } from "./scan-turn.ts";
import { toolLines } from "./tool-lines.ts";

const openTag = "<tool_call>";
const closeTag = "</tool_call>";
const anyTag = /<\/?tool_call>/g;

export const hermes: Dialect = {
  name: "hermes",
  resultRole: "tool",
  looksLike: (text) => /<tool_call>(?!\s*<function=)/.test(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools, one JSON object a line:",
      toolLines(tools),
      "For each call write its name and arguments as JSON between tags:",
      `${openTag}\n{"name": "tool_name", "arguments": {"argument": "value"}}\n${closeTag}`,
    ].join("\n"),
  renderCalls: (calls) =>
    calls
      .map(
        ({ name, arguments: args }) => `${openTag}\n${renderLiteral({ name, arguments: args }, "json")}\n${closeTag}`,
      )
      .join("\n"),
  renderTurn: (turn) => renderTurn(hermes, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = {
  thinking: [thinkTags],
  start: /<tool_call>/g,
  read: (text, match) => readCall(text, match),
};

function readCall(text: string, { index: start }: RegExpExecArray): CallsRead {
  const from = start + openTag.length;
  try {
    const { value, end, mends } = readJson(text, from, limitOf(text, from));
    const call = readCallObject(value, { key: "arguments", ignored: [] }, from);
    const close = endOfCall(text, end);
    const found = { ...call, start, end: close.end, mends: [...mends, ...call.mends, ...close.mends] };
    return { end: close.end, calls: [found], problems: [] };
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    const end = nextTag(text, Math.max(error.position, from));
    return { end, calls: [], problems: [{ start, end, message: `tool call: ${error.message}` }] };
  }
}

/** @throws LiteralError when something other than a tag or the end follows the value */
function endOfCall(text: string, position: number): { readonly end: number; readonly mends: readonly string[] } {
  const reader = new LiteralReader(text, position, "json");
  if (reader.take(closeTag)) return { end: reader.position, mends: [] };
  if (reader.position >= text.length || text.startsWith(openTag, reader.position))
    return { end: reader.position, mends: [`the missing ${closeTag} was added`] };
  throw reader.error(`expected ${closeTag} after the JSON object, found ${reader.shown()}`);
}

function limitOf(text: string, from: number): number {
  anyTag.lastIndex = from;
  return anyTag.exec(text)?.index ?? text.length;
}

/** Past a malformed call: after its closing tag, or at the next opening one if that comes first. */
function nextTag(text: string, from: number): number {
  const at = limitOf(text, from);
  return text.startsWith(closeTag, at) ? at + closeTag.length : at;
}
