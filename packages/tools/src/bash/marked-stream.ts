/**
 * Finds the mark that ends a command's output in a stream of chunks. Invariants: what stands before the mark is handed on once and
 * in order; a mark that comes in pieces is found; memory is the length of a mark's line.
 */
export interface MarkFound {
  readonly exitCode: number;
  /** The shell's state is that after the command. */
  readonly stateKept: boolean;
  /** Where the shell is then; null when that is not known. */
  readonly folder: string | null;
}

/** Longest end line: digits, two numbers, and a path, each byte of which may be escaped. */
const lineBytes = 20_000;

export class MarkedStream {
  #pending: Buffer = Buffer.alloc(0);
  readonly #start: Buffer;

  /** @param mark 32 hex digits that nobody else knows */
  constructor(
    mark: string,
    readonly onOutput: (bytes: Uint8Array) => void,
  ) {
    this.#start = Buffer.from(`\n${mark} `, "latin1");
  }

  /** @returns how the command ended, once its mark came; what follows in the chunk is dropped */
  push(chunk: Uint8Array): MarkFound | null {
    const bytes = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    const at = bytes.indexOf(this.#start);
    if (at === -1) {
      const keep = Math.min(bytes.length, this.#start.length - 1);
      this.#handOn(bytes.subarray(0, bytes.length - keep));
      this.#pending = Buffer.from(bytes.subarray(bytes.length - keep));
      return null;
    }
    this.#handOn(bytes.subarray(0, at));
    const line = bytes.subarray(at, at + lineBytes).toString("utf8");
    const found = /^\n[0-9a-f]{32} (\d{1,3}) ([01]) ([^\n]*)\n/.exec(line);
    this.#pending = Buffer.from(bytes.subarray(at));
    if (found === null) return null;
    return { exitCode: Number(found[1]), stateKept: found[2] === "1", folder: unquoted(found[3] ?? "") };
  }

  /** What was held back for a mark that never came. */
  flush(): void {
    this.#handOn(this.#pending);
    this.#pending = Buffer.alloc(0);
  }

  #handOn(bytes: Uint8Array): void {
    if (bytes.length > 0) this.onOutput(bytes);
  }
}

/** A word as bash quotes it; where it needed more than backslashes it stays as it is. */
function unquoted(word: string): string | null {
  if (word === "''" || word === "") return null;
  return word.startsWith("$'") ? word : word.replace(/\\(.)/gu, "$1");
}
