/**
 * Takes a program's output as it comes and keeps its two ends. Invariants: memory is at most `headBytes` + `tailBytes` (and
 * what one chunk takes), however much comes and in however small pieces; `bytes` counts all of it; nothing is missing while
 * `gapBytes` is 0; characters at the borders of chunks are whole, those at the borders of the gap are left out.
 */
import type { TextEnds } from "./cut-text.ts";
import { decodeOutput } from "./decode-output.ts";

export interface CollectedOutput extends TextEnds {
  /** UTF-8 bytes of all that came. */
  readonly bytes: number;
}

export class OutputCollector {
  #head = new Uint8Array(0);
  #headSize = 0;
  /** A ring, made on the first byte that the head has no room for. */
  #tail: Uint8Array | null = null;
  #bytes = 0;

  constructor(readonly limits: { readonly headBytes: number; readonly tailBytes: number }) {}

  /** Bytes that came so far. */
  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array | string): void {
    const bytes = typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
    this.#bytes += bytes.length;
    const forHead = bytes.subarray(0, Math.max(0, this.limits.headBytes - this.#headSize));
    this.#keepHead(forHead);
    this.#keepTail(bytes.subarray(forHead.length));
  }

  collected(): CollectedOutput {
    const head = this.#head.subarray(0, this.#headSize);
    const tail = this.#readTail();
    const gap = this.#bytes - head.length - tail.length;
    if (gap === 0) {
      return { head: decodeOutput(joined(head, tail)), gapBytes: 0, tail: "", bytes: this.#bytes };
    }
    const end = head.length - brokenEnd(head);
    const start = brokenStart(tail);
    return {
      head: decodeOutput(head.subarray(0, end)),
      gapBytes: gap + (head.length - end) + start,
      tail: decodeOutput(tail.subarray(start)),
      bytes: this.#bytes,
    };
  }

  #keepHead(bytes: Uint8Array): void {
    const size = this.#headSize + bytes.length;
    if (size > this.#head.length) {
      const larger = new Uint8Array(Math.min(this.limits.headBytes, Math.max(size, 2 * this.#head.length)));
      larger.set(this.#head);
      this.#head = larger;
    }
    this.#head.set(bytes, this.#headSize);
    this.#headSize = size;
  }

  #keepTail(bytes: Uint8Array): void {
    const size = this.limits.tailBytes;
    if (bytes.length === 0 || size === 0) return;
    this.#tail ??= new Uint8Array(size);
    const kept = bytes.subarray(Math.max(0, bytes.length - size));
    // The ring's place of a byte is its number after the head, so it is known without a cursor.
    const place = (this.#bytes - this.#headSize - kept.length) % size;
    const first = kept.subarray(0, size - place);
    this.#tail.set(first, place);
    this.#tail.set(kept.subarray(first.length), 0);
  }

  #readTail(): Uint8Array {
    const after = this.#bytes - this.#headSize;
    if (this.#tail === null) return new Uint8Array(0);
    if (after <= this.#tail.length) return this.#tail.subarray(0, after);
    const place = after % this.#tail.length;
    return joined(this.#tail.subarray(place), this.#tail.subarray(0, place));
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Bytes of a character that the end cuts off. */
function brokenEnd(bytes: Uint8Array): number {
  let back = 1;
  while (back < 4 && isContinuation(bytes[bytes.length - back])) back += 1;
  const lead = bytes[bytes.length - back] ?? 0;
  const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  return wanted > back ? back : 0;
}

/** Bytes of a character that began before the start. */
function brokenStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start += 1;
  return start;
}
