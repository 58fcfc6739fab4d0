/**
 * Finds the end of a fenced block. Invariants: a fence inside a here-document is text of the command; a block ends at the first
 * closing fence at least as long as its opening one; one that meets another call's opening before that was never closed; work is
 * linear in the text, but for a bounded number of here-documents whose end was looked for in vain.
 */
export interface Fence {
  readonly mark: "`" | "~";
  readonly length: number;
}
export type BlockEnd =
  | { readonly closed: true; readonly contentEnd: number; readonly end: number }
  /** `end`: where what can't be read ends. */
  | { readonly closed: false; readonly end: number };

/** Here-documents are only looked for in blocks with fences of this length: a longer one says that it stands for itself. */
export const shortFence = 3;
/** Second readings of one text. */
const maxRetries = 32;

/** A fence on a line of its own: its mark, its length and what is written behind it. */
export function fenceOf(line: string): (Fence & { readonly indent: number; readonly info: string }) | null {
  const found = /^( {0,3})(`{3,}|~{3,})(.*)$/s.exec(line);
  const [, spaces = "", marks = "", rest = ""] = found ?? [];
  if (found === null || (marks.startsWith("`") && rest.includes("`"))) return null;
  return { mark: marks.startsWith("`") ? "`" : "~", length: marks.length, indent: spaces.length, info: rest.trim() };
}

export class BlockScanner {
  #lastLines: Map<string, number> | null = null;
  #retries = 0;
  /** Shortest fence of each mark that nothing up to the end of the text closes. */
  readonly #neverClosed = new Map<Fence["mark"], number>();

  /** @param opensCall is this, behind a fence, the beginning of a call? */
  constructor(
    readonly text: string,
    readonly opensCall: (info: string) => boolean,
  ) {}

  /** @param from where the line behind the opening fence begins */
  endOf(fence: Fence, from: number, hasHereDocuments: boolean): BlockEnd {
    if (hasHereDocuments && fence.length === shortFence && this.#retries < maxRetries) {
      const read = this.#read(fence, from, true);
      if (read.closed) return read;
      this.#retries += 1;
    }
    return this.#read(fence, from, false);
  }

  /** Where a block that is no call ends; null: nothing closes it. */
  quotedEnd({ mark, length }: Fence, from: number): number | null {
    if (length >= (this.#neverClosed.get(mark) ?? Number.POSITIVE_INFINITY)) return null;
    for (let at = from; at <= this.text.length; ) {
      const newline = this.text.indexOf("\n", at);
      const lineEnd = newline === -1 ? this.text.length : newline;
      const found = fenceOf(this.text.slice(at, lineEnd));
      if (found !== null && found.mark === mark && found.length >= length && found.info === "") return lineEnd;
      at = lineEnd + 1;
    }
    this.#neverClosed.set(mark, length);
    return null;
  }

  #read(fence: Fence, from: number, hereDocuments: boolean): BlockEnd {
    const pending: HereDocument[] = [];
    let finishAt: number | null = null;
    for (let at = from; at <= this.text.length; ) {
      const newline = this.text.indexOf("\n", at);
      const lineEnd = newline === -1 ? this.text.length : newline;
      const line = this.text.slice(at, lineEnd);
      const open = pending[0];
      if (open !== undefined) {
        if (endsHereDocument(line, open)) pending.shift();
      } else {
        const end = this.#judge(fence, line, at, lineEnd, from);
        if (end !== null) return end;
        if (finishAt === null && /^\s*<finish>/.test(line)) finishAt = at;
        if (hereDocuments) pending.push(...hereDocumentsOf(line).filter(({ word }) => this.#comesAfter(word, at)));
      }
      at = lineEnd + 1;
    }
    return { closed: false, end: finishAt ?? this.text.length };
  }

  #judge({ mark, length }: Fence, line: string, at: number, lineEnd: number, from: number): BlockEnd | null {
    const found = fenceOf(line);
    if (found === null || found.mark !== mark || found.length < length) return null;
    if (found.info === "") return { closed: true, contentEnd: Math.max(from, at - 1), end: lineEnd };
    return this.opensCall(found.info) ? { closed: false, end: at } : null;
  }

  /** A word that no later line consists of ends nothing: `1 << n` is no here-document. */
  #comesAfter(word: string, at: number): boolean {
    if (this.#lastLines === null) {
      this.#lastLines = new Map();
      let start = 0;
      for (const line of this.text.split("\n")) {
        this.#lastLines.set(line.trim(), start);
        start += line.length + 1;
      }
    }
    return (this.#lastLines.get(word) ?? -1) > at;
  }
}

interface HereDocument {
  readonly word: string;
  /** Tabs before its last line are left out. */
  readonly indented: boolean;
}

const hereDocument = /(?<!<)<<(-?)(?!<)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_][\w.-]*))/g;

/** Those that begin on a line of a shell's script. */
const hereDocumentsOf = (line: string): HereDocument[] =>
  [...line.matchAll(hereDocument)].map(([, dash, single, double, bare]) => ({
    word: single ?? double ?? bare ?? "",
    indented: dash === "-",
  }));

function endsHereDocument(line: string, { word, indented }: HereDocument): boolean {
  const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
  return (indented ? whole.replace(/^\t+/, "") : whole) === word;
}

/** Does every here-document of a script end in it? */
export function endsItsHereDocuments(script: string): boolean {
  const pending: HereDocument[] = [];
  for (const line of script.split("\n")) {
    const open = pending[0];
    if (open === undefined) pending.push(...hereDocumentsOf(line));
    else if (endsHereDocument(line, open)) pending.shift();
  }
  return pending.length === 0;
}
