/**
 * Calls as JSON between tags: `<tool_call>{"name": "get", "arguments": {"key": "a"}}</tool_call>`. The JSON value itself
 * says where a call ends, so a tag inside a string is only text. A missing closing tag is taken for closed where the next
 * tag begins or the text ends; a malformed call is told to the model and the next one is still read.
 */
import type { Dialect, ParsedTurn, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject, ToolCall } from "@rolldeck/contracts/segments";
import { answerStart } from "./answer-start.ts";
import { joinProblems } from "./join-problems.ts";
import { type Json, LiteralError, LiteralReader } from "./literal-reader.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";

const openTag = "<tool_call>";
const closeTag = "</tool_call>";
const anyTag = /<\/?tool_call>/g;

export const hermes: Dialect = {
  name: "hermes",
  resultRole: "tool",
  looksLike: (text) => text.includes(openTag),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools, one JSON object a line:",
      "<tools>",
      ...tools.map((tool) => renderLiteral(schemaOf(tool), "json")),
      "</tools>",
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
  parse: (text) => parseHermes(text),
  renderResult: (_call, output) => output,
};

const schemaOf = ({ name, description, parameters }: ToolSpec): JsonObject => ({
  type: "function",
  function: { name, description, parameters },
});

function parseHermes(text: string): ParsedTurn {
  const calls: ToolCall[] = [];
  const problems: string[] = [];
  const content: string[] = [];
  let position = answerStart(text);
  let kept = 0;
  for (;;) {
    const start = text.indexOf(openTag, position);
    if (start === -1) break;
    content.push(text.slice(kept, start));
    const reader = new LiteralReader(text, start + openTag.length, "json");
    try {
      const call = readCall(reader);
      position = endOfCall(reader);
      calls.push({ index: calls.length, ...call, raw: text.slice(start, position) });
    } catch (error) {
      if (!(error instanceof LiteralError)) throw error;
      problems.push(error.message);
      position = nextTag(text, Math.max(error.position, start + openTag.length));
    }
    kept = position;
  }
  content.push(text.slice(kept));
  return {
    content: content.join("").trim(),
    calls,
    reasoning: "",
    repairs: [],
    error: joinProblems(problems.map((problem) => `tool call: ${problem}`)),
  };
}

/** @throws LiteralError */
function readCall(reader: LiteralReader): Pick<ToolCall, "name" | "arguments"> {
  reader.skipSpace();
  const at = reader.position;
  const value = reader.readValue();
  const fail = (message: string): never => {
    throw new LiteralError(message, at);
  };
  if (!isObject(value)) return fail('expected a JSON object with "name" and "arguments"');
  const { name, arguments: args = {} } = value;
  if (typeof name !== "string") return fail('"name" must be a string');
  const unknown = Object.keys(value).find((key) => key !== "name" && key !== "arguments");
  if (unknown !== undefined)
    return fail(`beside "name" and "arguments" there must be nothing, found ${JSON.stringify(unknown)}`);
  if (!isObject(args)) return fail('"arguments" must be a JSON object');
  return { name, arguments: args };
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @throws LiteralError when something other than a tag or the end follows the value */
function endOfCall(reader: LiteralReader): number {
  if (reader.take(closeTag)) return reader.position;
  reader.skipSpace();
  if (reader.position >= reader.text.length || reader.text.startsWith(openTag, reader.position)) return reader.position;
  throw reader.error(`expected ${closeTag} after the JSON object, found ${reader.shown()}`);
}

/** Past a malformed call: after its closing tag, or at the next opening one if that comes first. */
function nextTag(text: string, from: number): number {
  anyTag.lastIndex = from;
  const tag = anyTag.exec(text);
  if (tag === null) return text.length;
  return tag[0] === closeTag ? tag.index + closeTag.length : tag.index;
}
