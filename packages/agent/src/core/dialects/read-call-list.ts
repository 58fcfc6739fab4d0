/**
 * A Python list of calls: `[get(key="a"), finish(answer="7")]`. A malformed call is told to the model and the next call of
 * the list is still read; a string that is not closed ends the list at its line, since what follows can't be told from what
 * was meant to be in the string.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";
import { LiteralError, LiteralReader } from "./literal-reader.ts";
import { type CallFound, type CallsRead, type ProblemFound, shortName } from "./scan-turn.ts";
import { skipBalanced } from "./skip-balanced.ts";

const identifier = /[\p{L}_][\p{L}\p{N}_.-]*/uy;

/** Reads calls from after the opening bracket up to the closing one, or as far as they can be told. */
export function readCallList(text: string, start: number): CallsRead {
  const calls: CallFound[] = [];
  const problems: ProblemFound[] = [];
  const reader = new LiteralReader(text, start, "python");
  const ended = (end: number): CallsRead => ({ end, calls, problems });
  for (;;) {
    reader.skipSpace();
    const from = reader.position;
    const name = reader.match(identifier) ?? "";
    const open = reader.position;
    try {
      if (name === "") throw reader.error(`expected a call, found ${reader.shown()}`);
      reader.expect("(", shortName(name));
      const args = readArguments(reader);
      calls.push({ start: from, end: reader.position, name, arguments: args, mends: [] });
    } catch (error) {
      if (!(error instanceof LiteralError)) throw error;
      const after = name === "" ? null : skipBalanced(text, open, ")");
      const end = after?.position ?? reader.position;
      const message = name === "" ? error.message : `${shortName(name)}: ${error.message}`;
      problems.push({ start: from, end, message });
      if (!after?.closed) return ended(end);
      reader.position = end;
    }
    if (reader.take("]")) return ended(reader.position);
    if (reader.take(",")) {
      if (reader.take("]")) return ended(reader.position);
      continue;
    }
    const message = `expected , or ] after ${shortName(name)}(...), found ${reader.shown()}`;
    problems.push({ start: from, end: reader.position, message });
    return ended(reader.position);
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
    const name = reader.match(identifier);
    if (name === null || !reader.take("=")) {
      reader.position = at;
      throw reader.error(`arguments must be named, as in name="value"; found ${reader.shown()}`);
    }
    if (args.has(name)) throw reader.error(`the argument ${shortName(name)} is given twice`);
    args.set(name, reader.readValue());
  }
  return Object.fromEntries(args);
}
