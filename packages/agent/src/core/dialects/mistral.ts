/**
 * Calls of Mistral's models behind `[TOOL_CALLS]`. Two forms are read: an array of `{"name", "arguments"}` objects, and the
 * newer `[TOOL_CALLS]name[ARGS]{…}` for each call, perhaps with `[CALL_ID]…` before the arguments. The array is written.
 * Repairs, each said: the near misses of `mendRules` and of `readCallObject`. A malformed element of an array doesn't hide the
 * next one, as long as its brackets close. Words behind the calls are content.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { LiteralError, LiteralReader, mendRules } from "./literal-reader.ts";
import { readCallObject } from "./read-call-object.ts";
import { isObject, readJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";
import {
  type CallFormat,
  type CallFound,
  type CallsRead,
  type ProblemFound,
  scanTurn,
  shortName,
  type ThinkingMarks,
  thinkTags,
} from "./scan-turn.ts";
import { skipBalanced } from "./skip-balanced.ts";

const callMark = "[TOOL_CALLS]";
const thinkMarks: ThinkingMarks = { open: "[THINK]", close: "[/THINK]" };
const named = /([^[\]{}]*)(?:\[CALL_ID\][^[\]{}]*)?\[ARGS\]/y;

export const mistral: Dialect = {
  name: "mistral",
  resultRole: "tool",
  looksLike: (text) => text.includes(callMark),
  describeTools: (tools: readonly ToolSpec[]) => {
    const specs = tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
    return [
      "You act by calling tools. Available tools:",
      `[AVAILABLE_TOOLS]${renderLiteral(specs, "json")}[/AVAILABLE_TOOLS]`,
      "Write your calls as one array, with nothing after it:",
      `${callMark}[{"name": "tool_name", "arguments": {"argument": "value"}}]`,
    ].join("\n");
  },
  renderCalls: (calls) =>
    callMark +
    renderLiteral(
      calls.map(({ name, arguments: args }) => ({ name, arguments: args })),
      "json",
    ),
  renderTurn: ({ reasoning, content = "", calls }) =>
    (reasoning ? `${thinkMarks.open}${reasoning}${thinkMarks.close}` : "") +
    content +
    (calls.length > 0 ? mistral.renderCalls(calls) : ""),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = {
  thinking: [thinkMarks, thinkTags],
  start: /\[TOOL_CALLS\]/g,
  read: (text, { index }) => readCalls(text, index),
};

function readCalls(text: string, start: number): CallsRead {
  const from = start + callMark.length;
  const reader = new LiteralReader(text, from, "json");
  reader.skipSpace();
  if (!text.startsWith(callMark, reader.position) && reader.take("[")) return readArray(reader, start);
  named.lastIndex = from;
  const match = named.exec(text);
  if (match === null) {
    const message = `tool call: expected name[ARGS]{...} or a JSON array after ${callMark}, found ${reader.shown()}`;
    return { end: from, calls: [], problems: [{ start, end: from, message }] };
  }
  return readNamed(text, start, match[1]?.trim() ?? "", named.lastIndex);
}

function readNamed(text: string, start: number, name: string, from: number): CallsRead {
  try {
    const { value, end, mends } = readJson(text, from, limitOf(text, from));
    if (!isObject(value)) throw new LiteralError("the arguments must be a JSON object", from);
    return { end, calls: [{ start, end, name, arguments: value, mends }], problems: [] };
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    const end = nextCalls(text, from, error);
    return { end, calls: [], problems: [{ start, end, message: `${shortName(name)}: ${error.message}` }] };
  }
}

/** After the opening bracket. */
function readArray(reader: LiteralReader, start: number): CallsRead {
  const { text } = reader;
  const calls: (CallFound & { readonly mends: string[] })[] = [];
  const problems: ProblemFound[] = [];
  const ended = (end: number): CallsRead => ({ end, calls, problems });
  if (reader.take("]")) return ended(reader.position);
  for (;;) {
    reader.skipSpace();
    const from = reader.position;
    try {
      const { value, end, mends } = readJson(text, from, limitOf(text, from));
      const call = readCallObject(value, { key: "arguments", ignored: ["id", "type"] }, end);
      calls.push({ ...call, start: from, end, mends: [...mends, ...call.mends] });
      reader.position = end;
    } catch (error) {
      if (!(error instanceof LiteralError)) throw error;
      const skipped =
        text[from] === "{"
          ? skipBalanced(text.slice(0, limitOf(text, from)), from, "}")
          : { position: from, closed: false };
      const end = skipped.closed ? skipped.position : nextCalls(text, from, error);
      problems.push({ start, end, message: `tool call: ${error.message}` });
      if (!skipped.closed) return ended(end);
      reader.position = end;
    }
    const last = calls.at(-1);
    const comma = reader.take(",");
    if (reader.take("]")) {
      if (comma) last?.mends.push(mendRules.comma);
      return ended(reader.position);
    }
    if (comma) continue;
    if (reader.position < text.length || last === undefined) {
      const message = `tool calls: expected , or ] after a call, found ${reader.shown()}`;
      problems.push({ start, end: reader.position, message });
    } else last.mends.push("the missing ] was added");
    return ended(reader.position);
  }
}

/** Where the next calls begin. */
function limitOf(text: string, from: number): number {
  const at = text.indexOf(callMark, from);
  return at === -1 ? text.length : at;
}

/** Behind what could not be read; the error may stand on the mark itself. */
const nextCalls = (text: string, from: number, { position }: LiteralError): number =>
  limitOf(text, Math.max(from, position - callMark.length + 1));
