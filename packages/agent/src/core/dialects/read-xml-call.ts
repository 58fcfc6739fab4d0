/**
 * Calls as tags: `<function=N><parameter=P>value</parameter></function>`. The format has no escapes, so a value ends where
 * the next tag of the format begins. Rules:
 * - One line break after the opening tag and one before the closing tag belong to the format, not to the value.
 * - Values are typed by the tool's schema; where it allows a string, or names no type, they stay text.
 * - Repairs, each said: a missing `</parameter>`, and one of `</function>` and `</tool_call>` missing when the other closes
 *   the call.
 * - Errors, and the call doesn't run: no closing tag at all, a tag without a readable name, a parameter given twice, words
 *   between parameters, and closing tags left over behind the call: then a value held a tag and nobody knows where it ended.
 * - An error doesn't hide the next call, unless that one may stand in a value of the unreadable one.
 */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { typedArgument } from "../coerce-text.ts";
import { LiteralError } from "./literal-reader.ts";
import { type CallFound, type CallsRead, knownName, shortName } from "./scan-turn.ts";

/** One of the two families. */
export interface XmlFormat {
  /** Whatever may end a value; with the flag g. */
  readonly tag: RegExp;
  /** What may begin a call, up to where `<function=` stands; with the flag g. */
  readonly opening: RegExp;
}
export const qwenTags: XmlFormat = {
  tag: /<\/?parameter\b|<\/?function\b|<\/?tool_call>/g,
  opening: /<tool_call>\s*(?=<function=)|<tool_call>|(?=<function=)/g,
};
export const skyrlTags: XmlFormat = {
  tag: /<\/?parameter\b|<\/?function\b/g,
  // Looks back only where a call begins: elsewhere a long run of white space would be read again at each of its places.
  opening: /(?=<function=)(?<!<tool_call>\s*)/g,
};

const space = /\s*/y;
/** A name ends at its `>`, on its line. */
const functionTag = /<function=([^<>\n]*)>/y;
const parameterTag = /<parameter=([^\s<>="']+)>/y;

/** The call that begins at a match of `opening`. */
export function readXmlCall(
  text: string,
  match: RegExpExecArray,
  tools: readonly ToolSpec[],
  format: XmlFormat,
): CallsRead {
  const { index: start } = match;
  const reader = new TagReader(text, start + match[0].length, format);
  try {
    const call = readFunction(reader, match[0] !== "", tools);
    return { end: call.end, calls: [{ ...call, start }], problems: [] };
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    const end = pastCall(text, Math.max(error.position, start + Math.max(1, match[0].length)), format);
    const inDoubt = closesMore(text.slice(start, end));
    return { end, calls: [], problems: [{ start, end, message: error.message, inDoubt }] };
  }
}

/** More closing than opening tags: some belong to a call further up. */
function closesMore(text: string): boolean {
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
  return count(/<\/parameter>/g) > count(/<parameter=/g) || count(/<\/function>/g) > count(/<function=/g);
}

function execFrom(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}
const nextIndex = (pattern: RegExp, text: string, from: number): number =>
  execFrom(pattern, text, from)?.index ?? text.length;

class TagReader {
  constructor(
    readonly text: string,
    public position: number,
    readonly format: XmlFormat,
  ) {}

  skipSpace(): void {
    space.lastIndex = this.position;
    space.test(this.text);
    this.position = space.lastIndex;
  }

  take(mark: string): boolean {
    if (!this.text.startsWith(mark, this.position)) return false;
    this.position += mark.length;
    return true;
  }

  /** First group of the pattern (sticky), or null. */
  match(pattern: RegExp): string | null {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text);
    if (found !== null) this.position = pattern.lastIndex;
    return found?.[1] ?? null;
  }

  /** Up to the next tag of the format or the end. */
  untilTag(): string {
    const from = this.position;
    this.position = nextIndex(this.format.tag, this.text, from);
    return this.text.slice(from, this.position);
  }

  error(message: string): LiteralError {
    return new LiteralError(message, this.position);
  }

  shown(): string {
    const line = this.text.slice(this.position, this.position + 40).split("\n", 1)[0] ?? "";
    return this.position >= this.text.length ? "the end of the text" : JSON.stringify(line);
  }
}

/** At `<function=`. @throws LiteralError */
function readFunction(reader: TagReader, wrapped: boolean, tools: readonly ToolSpec[]): Omit<CallFound, "start"> {
  const name = reader.match(functionTag);
  if (name === null) reader.skipSpace();
  if (name === null) throw reader.error(`tool call: expected <function=name>, found ${reader.shown()}`);
  const mends = new Set<string>();
  const texts = new Map<string, string>();
  for (reader.skipSpace(); reader.text.startsWith("<parameter", reader.position); reader.skipSpace())
    readParameter(reader, name, texts, mends);
  closeCall(reader, name, wrapped, mends);
  const parameters = tools.find((tool) => tool.name === knownName(name, tools))?.parameters ?? {};
  const args = [...texts].map(([key, value]) => [key, typedArgument(key, value, parameters)] as const);
  return { name, arguments: Object.fromEntries(args), mends: [...mends], end: reader.position };
}

function readParameter(reader: TagReader, name: string, texts: Map<string, string>, mends: Set<string>): void {
  const key = reader.match(parameterTag);
  if (key === null) throw reader.error(`${shortName(name)}: no readable name in the tag ${reader.shown()}`);
  if (texts.has(key)) throw reader.error(`${shortName(name)}: the parameter ${shortName(key)} is given twice`);
  const value = reader.untilTag();
  if (!reader.take("</parameter>")) {
    if (reader.position >= reader.text.length) throw reader.error(notClosed(name));
    mends.add(`the missing </parameter> of ${shortName(key)} was added`);
  }
  texts.set(key, value.replace(/^\n/, "").replace(/\n$/, ""));
}

const notClosed = (name: string): string => `${shortName(name)}: the call is not finished, no closing tag follows`;

function closeCall(reader: TagReader, name: string, wrapped: boolean, mends: Set<string>): void {
  const closed = reader.take("</function>");
  const end = reader.position;
  reader.skipSpace();
  const wrapper = wrapped && reader.take("</tool_call>");
  if (!closed && !wrapper) {
    if (reader.position >= reader.text.length || startsCall(reader)) throw reader.error(notClosed(name));
    throw reader.error(`${shortName(name)}: expected <parameter=name> or </function>, found ${reader.shown()}`);
  }
  if (!closed) mends.add("the missing </function> was added");
  else if (wrapped && !wrapper) {
    reader.position = end;
    mends.add("the missing </tool_call> was added");
  }
  refuseLeftover(reader, name);
}

function startsCall({ text, position }: TagReader): boolean {
  return text.startsWith("<tool_call>", position) || text.startsWith("<function=", position);
}

/** Closing tags before the next call show that a value held a tag of the format. */
function refuseLeftover(reader: TagReader, name: string): void {
  const until = nextIndex(reader.format.opening, reader.text, reader.position);
  const rest = reader.text.slice(reader.position, until);
  const at = rest.search(/<\/parameter>|<\/function>/);
  if (at === -1) return;
  reader.position += at;
  const message = `${shortName(name)}: a value holds tags of the call format, so it can't be told where it ends`;
  throw reader.error(message);
}

/** Past an unreadable call: behind its last closing tag, or at the next call if that comes first. */
function pastCall(text: string, from: number, { opening }: XmlFormat): number {
  const until = nextIndex(opening, text, from);
  const rest = text.slice(from, until);
  const ends = ["</parameter>", "</function>", "</tool_call>"].map((mark) => {
    const at = rest.lastIndexOf(mark);
    return at === -1 ? 0 : at + mark.length;
  });
  const closed = Math.max(...ends);
  return closed === 0 ? until : from + closed;
}
