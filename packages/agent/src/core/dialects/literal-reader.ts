/**
 * Reads one literal at a position of a text: JSON, or the literals of Python. Strict: nothing is repaired, nothing is read
 * as something else; a number that a double can't hold exactly is refused, as is a repeated key. The one liberty: Python
 * style takes JSON's spelling of true, false and null.
 *
 * A reader of JSON that is given a set for `mends` also reads the near misses below, where only one reading is possible, and
 * says there which it met. Quotes inside strings, missing brackets and words outside quotes are never guessed.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";

export type Json = JsonObject[string];
export type LiteralStyle = "json" | "python";

/** What small models get wrong in JSON without making its meaning doubtful. */
export const mendRules = {
  comma: "a comma before a closing bracket was left out",
  quotes: "strings in single quotes were read as strings",
  words: "True, False or None was read as true, false or null",
  breaks: "a raw line break or tab inside a string was kept as it is",
  escape: "an escaped single quote was read as a quote",
  fence: "a code fence around the JSON was left out",
} as const;
export type Mend = (typeof mendRules)[keyof typeof mendRules];

/** Says what is wrong and where; `message` is fit for the model. */
export class LiteralError extends Error {
  override readonly name = "LiteralError";
  constructor(
    message: string,
    readonly position: number,
  ) {
    super(message);
  }
}

/** Deeper nesting than any tool needs; keeps hostile text from exhausting the stack. */
const maxDepth = 64;
const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const words: Readonly<Record<LiteralStyle, ReadonlyMap<string, boolean | null>>> = {
  json: new Map([
    ["true", true],
    ["false", false],
    ["null", null],
  ]),
  python: new Map([
    ["True", true],
    ["False", false],
    ["None", null],
    ["true", true],
    ["false", false],
    ["null", null],
  ]),
};
const simpleEscapes: Readonly<Record<LiteralStyle, ReadonlyMap<string, string>>> = {
  json: new Map(Object.entries({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" })),
  python: new Map(
    Object.entries({
      '"': '"',
      "'": "'",
      "\\": "\\",
      b: "\b",
      f: "\f",
      n: "\n",
      r: "\r",
      t: "\t",
      v: "\v",
      a: "\u0007",
    }),
  ),
};

export class LiteralReader {
  constructor(
    readonly text: string,
    public position: number,
    readonly style: LiteralStyle,
    private readonly mends: Set<string> | null = null,
  ) {}

  /** Whether a near miss may be read here; what was met is said. */
  private mend(rule: Mend): boolean {
    this.mends?.add(rule);
    return this.mends !== null;
  }

  skipSpace(): void {
    space.lastIndex = this.position;
    space.test(this.text);
    this.position = space.lastIndex;
  }

  /** Moves over `mark` after any space; tells whether it was there. */
  take(mark: string): boolean {
    this.skipSpace();
    if (!this.text.startsWith(mark, this.position)) return false;
    this.position += mark.length;
    return true;
  }

  /** @throws LiteralError */
  expect(mark: string, after: string): void {
    if (!this.take(mark)) throw this.error(`expected ${mark} after ${after}, found ${this.shown()}`);
  }

  /** What the pattern (sticky) matches here, or null. */
  match(pattern: RegExp): string | null {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.position += found.length;
    return found;
  }

  error(message: string): LiteralError {
    return new LiteralError(message, this.position);
  }

  /** What stands here, for messages. */
  shown(): string {
    if (this.position >= this.text.length) return "the end of the text";
    return JSON.stringify([...this.text.slice(this.position, this.position + 24)].slice(0, 12).join(""));
  }

  /** @throws LiteralError */
  readValue(depth = 0): Json {
    this.skipSpace();
    if (depth > maxDepth) throw this.error(`nested deeper than ${maxDepth} levels`);
    const first = this.text[this.position];
    if (first === "{") return this.readObject(depth);
    if (first === "[") return this.readList(depth);
    if (this.quoteHere()) return this.readString();
    if (this.text.startsWith("```", this.position) && this.mend(mendRules.fence)) return this.readFenced(depth);
    const start = this.position;
    const digits = this.match(number);
    if (digits !== null) return this.readNumber(digits, start);
    const named = this.match(word);
    const value = named === null ? undefined : this.wordValue(named);
    if (value !== undefined) return value;
    this.position = start;
    throw this.error(`expected a ${this.style === "json" ? "JSON" : "literal"} value, found ${this.shown()}`);
  }

  private wordValue(named: string): boolean | null | undefined {
    const value = words[this.style].get(named);
    if (value !== undefined) return value;
    const python = words.python.get(named);
    return python !== undefined && this.mend(mendRules.words) ? python : undefined;
  }

  /** At a fence: the value inside it. */
  private readFenced(depth: number): Json {
    this.match(/```[a-z]*/y);
    const value = this.readValue(depth + 1);
    this.expect("```", "the value in a code fence");
    return value;
  }

  private quoteHere(): boolean {
    const first = this.text[this.position];
    return first === '"' || (first === "'" && (this.style === "python" || this.mend(mendRules.quotes)));
  }

  /** After a comma: a closing bracket, where the style allows one there. */
  private takeTrailing(mark: string): boolean {
    this.skipSpace();
    if (this.text[this.position] !== mark) return false;
    return (this.style === "python" || this.mend(mendRules.comma)) && this.take(mark);
  }

  private readNumber(digits: string, start: number): number {
    const value = Number(digits);
    if (/^[\p{L}\p{N}_.]$/u.test(this.text[this.position] ?? "")) {
      this.position = start;
      throw this.error(`not a number: ${this.shown()}`);
    }
    const integer = /^-?\d+$/.test(digits);
    if (!Number.isFinite(value) || (integer && !Number.isSafeInteger(value))) {
      this.position = start;
      throw this.error(`the number ${digits.slice(0, 40)} is too large to be read exactly; write it as a string`);
    }
    return value;
  }

  private readList(depth: number): Json[] {
    const items: Json[] = [];
    this.position += 1;
    while (!this.take("]")) {
      if (items.length > 0) this.expect(",", "a list item");
      if (items.length > 0 && this.takeTrailing("]")) break;
      items.push(this.readValue(depth + 1));
    }
    return items;
  }

  private readObject(depth: number): JsonObject {
    const entries = new Map<string, Json>();
    this.position += 1;
    while (!this.take("}")) {
      if (entries.size > 0) this.expect(",", "a value");
      if (entries.size > 0 && this.takeTrailing("}")) break;
      const key = this.readKey();
      if (entries.has(key)) throw this.error(`the key ${JSON.stringify(key.slice(0, 64))} is given twice`);
      this.expect(":", "a key");
      entries.set(key, this.readValue(depth + 1));
    }
    // Own properties whatever the key: `__proto__` is data here.
    return Object.fromEntries(entries);
  }

  private readKey(): string {
    this.skipSpace();
    if (this.quoteHere()) return this.readString();
    throw this.error(`expected a key in ${this.style === "json" ? "double " : ""}quotes, found ${this.shown()}`);
  }

  /** At the opening quote. */
  private readString(): string {
    const start = this.position;
    const mark = this.text[start] ?? '"';
    const quote = this.style === "python" && this.text.startsWith(mark.repeat(3), start) ? mark.repeat(3) : mark;
    this.position += quote.length;
    let value = "";
    for (;;) {
      const from = this.position;
      const stop = this.plainEnd(quote);
      value += this.text.slice(from, stop);
      this.position = stop;
      const found = this.text[stop];
      if (found === undefined) throw new LiteralError("a string is not closed", start);
      if (found === "\\") value += this.readEscape();
      else if (this.text.startsWith(quote, stop)) {
        this.position += quote.length;
        return value;
      } else if (quote.length === 3 || (/[\n\r\t]/.test(found) && this.mend(mendRules.breaks))) {
        value += found;
        this.position += 1;
      } else
        throw this.error("a string holds a raw line break or control character; write it as an escape such as \\n");
    }
  }

  /** First position from here on that may end a plain stretch: a quote, a backslash or a control character. */
  private plainEnd(quote: string): number {
    let end = this.position;
    const last = quote[0];
    for (; end < this.text.length; end++) {
      const character = this.text[end];
      if (character === last || character === "\\") break;
      if (quote.length === 1 && this.breaksString(this.text.charCodeAt(end))) break;
    }
    return end;
  }

  private breaksString(code: number): boolean {
    return this.style === "json" ? code < 0x20 : code === 0x0a || code === 0x0d;
  }

  /** At the backslash. */
  private readEscape(): string {
    const kind = this.text[this.position + 1] ?? "";
    const known = simpleEscapes[this.style].get(kind);
    const simple = known === undefined && kind === "'" && this.mend(mendRules.escape) ? "'" : known;
    if (simple !== undefined) {
      this.position += 2;
      return simple;
    }
    const python = this.style === "python";
    const pattern = python ? /\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|[0-7]{1,3})/y : /\\u[0-9a-fA-F]{4}/y;
    const found = this.match(pattern);
    if (found !== null) return this.codePoint(found);
    if (!python || /^[uUxN\n\r]?$/.test(kind)) throw this.error(`a string holds the unknown escape ${this.shown()}`);
    // As in Python, an unknown escape is a backslash and what follows it.
    this.position += 1;
    return "\\";
  }

  private codePoint(written: string): string {
    const octal = /^\\[0-7]/.test(written);
    const code = Number.parseInt(written.slice(octal ? 1 : 2), octal ? 8 : 16);
    if (code > 0x10ffff) throw this.error(`no character has the code ${written}`);
    return written[1] === "u" ? String.fromCharCode(code) : String.fromCodePoint(code);
  }
}
