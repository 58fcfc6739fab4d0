/**
 * Calls as a Python list: `[get(key="a"), finish(answer="7")]`. Arguments are named and their values literals. Text around
 * the list is content. A malformed call is told to the model and the next call of the list is still read; a string that is
 * not closed ends the list at its line, since what follows can't be told from what was meant to be in the string.
 */
import type { Dialect, ParsedTurn, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject, ToolCall } from "@rolldeck/contracts/segments";
import { answerStart } from "./answer-start.ts";
import { describeParameters } from "./describe-parameters.ts";
import { joinProblems } from "./join-problems.ts";
import { LiteralError, LiteralReader } from "./literal-reader.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";

const listStart = /(?<![\p{L}\p{N}_)\]])\[\s*(?=[\p{L}_][\p{L}\p{N}_.-]*\s*\()/gu;
const identifier = /[\p{L}_][\p{L}\p{N}_.-]*/uy;
const argumentName = /[\p{L}_][\p{L}\p{N}_.-]*/uy;

interface Found {
  readonly calls: ToolCall[];
  readonly problems: string[];
}

export const pythonic: Dialect = {
  name: "pythonic",
  resultRole: "tool",
  looksLike: (text) => /(?<![\p{L}\p{N}_)\]])\[\s*[\p{L}_][\p{L}\p{N}_.-]*\s*\(/u.test(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Available tools:",
      ...tools.map(
        ({ name, description, parameters }) => `- ${name}(${describeParameters(parameters)}): ${description}`,
      ),
      'Write calls as a list with named arguments, for example [tool_name(argument="value")], and nothing after it.',
    ].join("\n"),
  renderCalls: (calls) =>
    `[${calls
      .map(({ name, arguments: args }) => {
        const parts = Object.entries(args).map(([key, value]) => `${key}=${renderLiteral(value, "python")}`);
        return `${name}(${parts.join(", ")})`;
      })
      .join(", ")}]`,
  renderTurn: (turn) => renderTurn(pythonic, turn),
  parse: (text) => parsePythonic(text),
  renderResult: (_call, output) => output,
};

function parsePythonic(text: string): ParsedTurn {
  const found: Found = { calls: [], problems: [] };
  const content: string[] = [];
  let position = answerStart(text);
  let kept = 0;
  for (;;) {
    listStart.lastIndex = position;
    const start = listStart.exec(text);
    if (start === null) break;
    content.push(text.slice(kept, start.index));
    position = readList(text, start.index + start[0].length, found);
    kept = position;
  }
  content.push(text.slice(kept));
  return {
    content: content.join("").trim(),
    calls: found.calls,
    reasoning: "",
    repairs: [],
    error: joinProblems(found.problems),
  };
}

/** Reads calls up to the closing bracket. @returns where the text goes on */
function readList(text: string, start: number, found: Found): number {
  const reader = new LiteralReader(text, start, "python");
  for (;;) {
    reader.skipSpace();
    const from = reader.position;
    const name = reader.match(identifier) ?? "";
    const open = reader.position;
    try {
      if (name === "") throw reader.error(`expected a call, found ${reader.shown()}`);
      reader.expect("(", name);
      const args = readArguments(reader);
      found.calls.push({ index: found.calls.length, name, arguments: args, raw: text.slice(from, reader.position) });
    } catch (error) {
      if (!(error instanceof LiteralError)) throw error;
      found.problems.push(name === "" ? error.message : `${name}: ${error.message}`);
      const after = name === "" ? null : skipCall(text, open);
      if (after === null || !after.closed) return after?.position ?? reader.position;
      reader.position = after.position;
    }
    if (reader.take("]")) return reader.position;
    if (reader.take(",")) {
      if (reader.take("]")) return reader.position;
      continue;
    }
    found.problems.push(`expected , or ] after ${name}(...), found ${reader.shown()}`);
    return reader.position;
  }
}

/** After the opening parenthesis. @throws LiteralError */
function readArguments(reader: LiteralReader): JsonObject {
  const args = new Map<string, JsonObject[string]>();
  while (!reader.take(")")) {
    if (args.size > 0) reader.expect(",", "an argument");
    if (args.size > 0 && reader.take(")")) break;
    reader.skipSpace();
    const at = reader.position;
    const name = reader.match(argumentName);
    if (name === null || !reader.take("=")) {
      reader.position = at;
      throw reader.error(`arguments must be named, as in name="value"; found ${reader.shown()}`);
    }
    if (args.has(name)) throw reader.error(`the argument ${name} is given twice`);
    args.set(name, reader.readValue());
  }
  return Object.fromEntries(args);
}

/**
 * Over a malformed call, from before its opening parenthesis to after the one that closes it. Strings are respected: nothing
 * inside one is ever taken for a call.
 */
function skipCall(text: string, open: number): { readonly position: number; readonly closed: boolean } {
  let depth = 0;
  for (let position = open; position < text.length; position++) {
    const character = text[position];
    if (character === '"' || character === "'") {
      const end = endOfString(text, position);
      if (!end.closed) return { position: end.position, closed: false };
      position = end.position - 1;
    } else if (character === "(" || character === "[" || character === "{") depth += 1;
    else if (character === ")" || character === "]" || character === "}") {
      depth -= 1;
      if (depth <= 0) return { position: position + 1, closed: character === ")" };
    }
  }
  return { position: text.length, closed: false };
}

function endOfString(text: string, start: number): { readonly position: number; readonly closed: boolean } {
  const mark = text[start] ?? '"';
  const quote = text.startsWith(mark.repeat(3), start) ? mark.repeat(3) : mark;
  for (let position = start + quote.length; position < text.length; position++) {
    const character = text[position];
    if (character === "\\") position += 1;
    else if (text.startsWith(quote, position)) return { position: position + quote.length, closed: true };
    else if (quote.length === 1 && (character === "\n" || character === "\r")) return { position, closed: false };
  }
  return { position: text.length, closed: false };
}
