/**
 * A command's output in a stream of chunks, between the marks that begin and end it. Invariants: what stands between them is handed
 * on once and in order, and nothing else (an earlier command's background job may have the last word before the first mark); a
 * mark that comes in pieces is found; memory is the length of a mark's line.
 */
export interface MarkFound {
  readonly exitCode: number;
  /** The shell's state is that after the command. */
  readonly stateKept: boolean;
  /** Where the shell is then; null when that is not known. */
  readonly folder: string | null;
}

/** A byte that texts do not end with: nothing else is held back while more may come. */
const separator = "\x1e";

/** Longest end line: digits, two numbers, and a path, each byte of which may be escaped. */
const lineBytes = 20_000;

export class MarkedStream {
  #pending: Buffer = Buffer.alloc(0);
  readonly #begin: Buffer;
  readonly #start: Buffer;
  #begun = false;

  /** @param mark 32 hex digits that nobody else knows */
  constructor(
    mark: string,
    readonly onOutput: (bytes: Uint8Array) => void,
  ) {
    this.#begin = Buffer.from(`${separator}${mark}+\n`, "latin1");
    this.#start = Buffer.from(`${separator}${mark} `, "latin1");
  }

  /** @returns how the command ended, once its mark came; what follows in the chunk is dropped */
  push(chunk: Uint8Array): MarkFound | null {
    let bytes = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    if (!this.#begun) {
      const begin = bytes.indexOf(this.#begin);
      if (begin === -1) {
        this.#pending = Buffer.from(bytes.subarray(Math.max(0, bytes.length - this.#begin.length + 1)));
        return null;
      }
      this.#begun = true;
      bytes = bytes.subarray(begin + this.#begin.length);
    }
    const at = bytes.indexOf(this.#start);
    if (at === -1) {
      const keep = heldBack(bytes, this.#start);
      this.#handOn(bytes.subarray(0, bytes.length - keep));
      this.#pending = Buffer.from(bytes.subarray(bytes.length - keep));
      return null;
    }
    this.#handOn(bytes.subarray(0, at));
    const line = bytes.subarray(at, at + lineBytes).toString("utf8");
    const found = /^.[0-9a-f]{32} (\d{1,3}) ([01]) ([^\n]*)\n/s.exec(line);
    // No mark of ours has such a line: somebody who heard it says it in our place.
    const isForged = found === null && bytes.length - at > lineBytes;
    if (isForged) this.#handOn(bytes.subarray(at));
    this.#pending = Buffer.from(bytes.subarray(isForged ? bytes.length : at));
    if (found === null) return null;
    return { exitCode: Number(found[1]), stateKept: found[2] === "1", folder: unquoted(found[3] ?? "") };
  }

  /** What was held back for a mark that never came. */
  flush(): void {
    if (this.#begun) this.#handOn(this.#pending);
    this.#pending = Buffer.alloc(0);
  }

  #handOn(bytes: Uint8Array): void {
    if (bytes.length > 0) this.onOutput(bytes);
  }
}

/** How many of the last bytes may be the beginning of the mark. */
function heldBack(bytes: Buffer, mark: Buffer): number {
  for (let count = Math.min(bytes.length, mark.length - 1); count > 0; count -= 1) {
    if (bytes.subarray(bytes.length - count).equals(mark.subarray(0, count))) return count;
  }
  return 0;
}

/** A word as bash quotes it; where it needed more than backslashes it stays as it is. */
function unquoted(word: string): string | null {
  if (word === "''" || word === "") return null;
  return word.startsWith("$'") ? word : word.replace(/\\(.)/gu, "$1");
}
