/**
 * Native `tool_calls` of chat-completions servers. The server writes and reads the model's own format; a turn's text here is
 * one JSON object, written by `openAiTurnText`. Rules: no arguments at all ("" or null) are `{}`; the near misses of
 * `mendRules` are read and said; text after the arguments' object is an error. One bad call never hides the others. Text that
 * is not such an object is plain content.
 */
import type { Dialect, NamedCall, ParsedTurn, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { type Json, LiteralError, LiteralReader } from "./literal-reader.ts";
import { type OpenAiCall, openAiTurnText } from "./openai-turn.ts";
import { isObject, readWholeJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";
import { type CallFound, type ProblemFound, scanTurn, shortName, thinkTags, turnOf } from "./scan-turn.ts";

export const openai: Dialect = {
  name: "openai",
  resultRole: "tool",
  assembled: true,
  looksLike: (text) => /^\s*\{/.test(text) && text.includes('"tool_calls"'),
  describeTools: () => "",
  renderCalls: (calls) => openAiTurnText({ reasoning: "", content: "", toolCalls: written(calls) }),
  // The model writes its own format, which only the server knows.
  showCall: ({ name, arguments: args }) =>
    `a call of the tool ${name} with the arguments ${renderLiteral(args, "json")}`,
  renderTurn: ({ reasoning = "", content = "", calls }) =>
    openAiTurnText({ reasoning, content, toolCalls: written(calls) }),
  parse: (text, tools) => parseOpenAi(text, tools),
  renderResult: (_call, output) => output,
};

const written = (calls: readonly NamedCall[]): OpenAiCall[] =>
  calls.map(({ name, arguments: args }, index) => ({
    id: `call_${index}`,
    name,
    arguments: renderLiteral(args, "json"),
  }));

/** A value with its place in the text. */
interface Placed {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
}
interface Envelope {
  readonly reasoning: string;
  readonly content: string;
  readonly calls: readonly Placed[];
}

function parseOpenAi(text: string, tools: readonly ToolSpec[]): ParsedTurn {
  const envelope = readEnvelope(text);
  if (envelope === null) return splitThinking(text, tools);
  const calls: CallFound[] = [];
  const problems: ProblemFound[] = [];
  for (const element of envelope.calls) {
    const read = readElement(element);
    if ("message" in read) problems.push(read);
    else calls.push(read);
  }
  // A server without a reasoning parser leaves the model's thinking in the content.
  const { reasoning, content } = envelope.reasoning === "" ? splitThinking(envelope.content, tools) : envelope;
  return turnOf({ reasoning: [reasoning], content: [content], calls, problems }, text, tools);
}

const splitThinking = (text: string, tools: readonly ToolSpec[]): ParsedTurn =>
  scanTurn(text, tools, { thinking: [thinkTags], start: /(?!)/g, read: () => null });

/** Null when the text is anything else than such an object. */
function readEnvelope(text: string): Envelope | null {
  const reader = new LiteralReader(text, 0, "json");
  const fields = new Map<string, Json>();
  const calls: Placed[] = [];
  try {
    reader.expect("{", "the start");
    while (!reader.take("}")) {
      if (fields.size > 0) reader.expect(",", "a field");
      const key = reader.readValue();
      reader.expect(":", "a key");
      if (typeof key !== "string" || fields.has(key)) return null;
      const listed = key === "tool_calls" && reader.take("[");
      if (listed) calls.push(...readElements(reader));
      fields.set(key, listed ? null : reader.readValue());
    }
    reader.skipSpace();
  } catch (error) {
    if (error instanceof LiteralError) return null;
    throw error;
  }
  const { reasoning, content, tool_calls: list, ...others } = Object.fromEntries(fields);
  const whole = reader.position === text.length && Object.keys(others).length === 0 && (list ?? null) === null;
  return whole && isText(reasoning) && isText(content)
    ? { reasoning: reasoning ?? "", content: content ?? "", calls }
    : null;
}

const isText = (value: Json | undefined): value is string | null | undefined =>
  value === undefined || value === null || typeof value === "string";

/** After the opening bracket. @throws LiteralError */
function readElements(reader: LiteralReader): Placed[] {
  const elements: Placed[] = [];
  while (!reader.take("]")) {
    if (elements.length > 0) reader.expect(",", "a call");
    reader.skipSpace();
    const start = reader.position;
    const value = reader.readValue();
    elements.push({ value, start, end: reader.position });
  }
  return elements;
}

function readElement({ value, start, end }: Placed): CallFound | ProblemFound {
  const fail = (message: string): ProblemFound => ({ start, end, message });
  if (!isObject(value) || typeof value.name !== "string") return fail('tool call: "name" must be a string');
  const { name, arguments: args = null } = value;
  if (args === null || args === "") return { start, end, name, arguments: {}, mends: [] };
  if (typeof args !== "string") return fail(`${shortName(name)}: "arguments" must be text`);
  try {
    const read = readWholeJson(args);
    if (isObject(read.value)) return { start, end, name, arguments: read.value, mends: read.mends };
    return fail(`${shortName(name)}: the arguments must be a JSON object`);
  } catch (error) {
    if (error instanceof LiteralError) return fail(`${shortName(name)}: ${error.message}`);
    throw error;
  }
}
