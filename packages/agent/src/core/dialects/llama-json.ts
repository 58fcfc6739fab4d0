/**
 * Calls of Llama 3: one JSON object `{"name": …, "parameters": {…}}`, with `<|python_tag|>` before it where the model writes
 * it; several are parted by a line break or `;`. Nothing marks the end of a call but its JSON.
 *
 * An object counts as a call where it begins a line, follows the tag or another call, and names itself: an answer may be JSON
 * too. JSON behind `<tool_call>` is another family's. JSON with other keys stays content, unless its name is a tool's: then it is a call gone wrong, and told. Repairs, each
 * said: the near misses of `mendRules` and of `readCallObject`. Words after the object are content.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { type Json, LiteralError } from "./literal-reader.ts";
import { readCallObject } from "./read-call-object.ts";
import { isObject, readJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";
import { type CallFormat, type CallsRead, knownName, scanTurn, thinkTags } from "./scan-turn.ts";
import { skipBalanced } from "./skip-balanced.ts";

const pythonTag = "<|python_tag|>";
/** Looks back for the other family's mark only where an object begins, or each line of an empty text would. */
const start =
  /<\|python_tag\|>\s*|(?:(?<=^|\n)[ \t]*(?=\{)(?<!<tool_call>\s*)|;\s*)(?=\{\s*["'](?:name|type|parameters|arguments)["'])/g;
/** A call that begins a line: no string that closes on its own line holds it. */
const lineStart = /<\|python_tag\|>|\n[ \t]*(?=\{\s*["'](?:name|type|parameters|arguments)["'])/g;

/** White space within the line only: over several it would be read again from each. */
const lineObject = /^[^\S\r\n\u2028\u2029]*\{\s*"name"\s*:\s*"[^"\n]*"\s*,\s*"parameters"\s*:/m;

export const llamaJson: Dialect = {
  name: "llama-json",
  resultRole: "tool",
  looksLike: (text) => text.includes(pythonTag) || lineObject.test(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools, one JSON object a line:",
      ...tools.map(({ name, description, parameters }) => renderLiteral({ name, description, parameters }, "json")),
      "A call is a JSON object with the tool's name and its parameters, alone on its line and with nothing after it:",
      '{"name": "tool_name", "parameters": {"parameter": "value"}}',
    ].join("\n"),
  renderCalls: (calls) =>
    calls.map(({ name, arguments: args }) => renderLiteral({ name, parameters: args }, "json")).join("\n"),
  renderTurn: (turn) => renderTurn(llamaJson, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = { thinking: [thinkTags], start, read: (text, match, tools) => readCall(text, match, tools) };

function readCall(text: string, match: RegExpExecArray, tools: readonly ToolSpec[]): CallsRead | null {
  const from = match.index + match[0].length;
  const tagged = match[0].startsWith(pythonTag);
  const limit = limitOf(text, from);
  try {
    const { value, end, mends } = readJson(text, from, limit);
    if (!tagged && !isCall(value, tools)) return null;
    const call = readCallObject(value, { key: "parameters", ignored: ["type"] }, end);
    return { end, calls: [{ ...call, start: from, end, mends: [...mends, ...call.mends] }], problems: [] };
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    const skipped = skipBalanced(text.slice(0, limit), from, "}");
    const end = Math.max(from, skipped.closed ? skipped.position : limit);
    if (!tagged && !seemsCall(text.slice(from, end), tools)) return null;
    return { end, calls: [], problems: [{ start: match.index, end, message: `tool call: ${error.message}` }] };
  }
}

const isTool = (name: string, tools: readonly ToolSpec[]): boolean =>
  tools.some((tool) => tool.name === knownName(name, tools));

function isCall(value: Json, tools: readonly ToolSpec[]): boolean {
  if (!isObject(value) || typeof value.name !== "string") return false;
  return Object.hasOwn(value, "parameters") || Object.hasOwn(value, "arguments") || isTool(value.name, tools);
}

/** As `isCall`, for what is not JSON. */
function seemsCall(text: string, tools: readonly ToolSpec[]): boolean {
  if (/["'](?:parameters|arguments)["']\s*:/.test(text)) return true;
  const name = /["']name["']\s*:\s*["']([^"'\n]*)["']/.exec(text)?.[1];
  return name !== undefined && isTool(name, tools);
}

/** Where the next call may begin. */
function limitOf(text: string, from: number): number {
  lineStart.lastIndex = from;
  return lineStart.exec(text)?.index ?? text.length;
}
