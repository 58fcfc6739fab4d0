/**
 * A thread's next prompt: ranges over the trajectory's tokens, and their JSON text. Invariants: it is only appended to, so
 * that a turn costs what it adds and not what came before; the text is written when somebody first asks for it, each token
 * once; what `json` gave is valid until the next call of `append` or `json`.
 */
import type { Prompt } from "@rolldeck/contracts/ports/sampler";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { TokenRange } from "@rolldeck/contracts/segments";
import type { TokenList } from "./token-list.ts";

const [open, close, comma, zero] = [0x5b, 0x5d, 0x2c, 0x30];

export class GrowingPrompt implements Prompt {
  readonly #tokens: TokenList;
  readonly #ranges: { start: number; end: number }[] = [];
  readonly #messages: () => readonly ChatMessage[];
  #length = 0;
  #bytes = new Uint8Array(0);
  /** Bytes written, the closing bracket not among them. */
  #used = 0;
  /** Where writing goes on: a range and a position in it. */
  #range = 0;
  #position = 0;

  constructor(tokens: TokenList, ranges: readonly TokenRange[], messages: () => readonly ChatMessage[]) {
    this.#tokens = tokens;
    this.#messages = messages;
    for (const range of ranges) this.append(range);
  }

  get length(): number {
    return this.#length;
  }

  append({ start, end }: TokenRange): void {
    if (start >= end) return;
    this.#length += end - start;
    const last = this.#ranges.at(-1);
    if (last !== undefined && last.end === start) last.end = end;
    else this.#ranges.push({ start, end });
  }

  /** A copy: touching ranges are joined, none is empty. */
  ranges(): TokenRange[] {
    return this.#ranges.map(({ start, end }) => ({ start, end }));
  }

  toArray(): number[] {
    const [only, ...more] = this.#ranges;
    if (only !== undefined && more.length === 0) return this.#tokens.slice(only.start, only.end);
    return this.#ranges.flatMap(({ start, end }) => this.#tokens.slice(start, end));
  }

  json(): Uint8Array {
    for (; this.#range < this.#ranges.length; this.#range++) {
      const { start, end } = this.#ranges[this.#range] ?? { start: 0, end: 0 };
      this.#position = Math.max(this.#position, start);
      this.#write(end);
      if (this.#range === this.#ranges.length - 1) break;
      this.#position = 0;
    }
    if (this.#used === 0) this.#bytes = Uint8Array.of(open, close);
    this.#bytes[Math.max(1, this.#used)] = close;
    return this.#bytes.subarray(0, Math.max(1, this.#used) + 1);
  }

  messages(): readonly ChatMessage[] {
    return this.#messages();
  }

  #write(end: number): void {
    let more = 0;
    for (let position = this.#position; position < end; position++) more += 1 + digitsOf(this.#tokens.at(position));
    this.#reserve(more);
    const bytes = this.#bytes;
    let used = this.#used;
    for (; this.#position < end; this.#position++) {
      bytes[used++] = used === 1 ? open : comma;
      used = writeNumber(bytes, used, this.#tokens.at(this.#position));
    }
    this.#used = used;
  }

  /** Room for so many more bytes and the bracket. */
  #reserve(more: number): void {
    const needed = this.#used + more + 2;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.ceil(needed * 1.125));
    larger.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = larger;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let bound = 10; bound <= value; bound *= 10) digits += 1;
  return digits;
}

/** @returns the place after the last digit */
function writeNumber(bytes: Uint8Array, at: number, value: number): number {
  const digits = digitsOf(value);
  let left = value;
  for (let place = at + digits - 1; place >= at; place--) {
    const tens = Math.floor(left / 10);
    bytes[place] = zero + (left - tens * 10);
    left = tens;
  }
  return at + digits;
}
