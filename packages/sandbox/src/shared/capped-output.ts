/**
 * Collects a stream of which only the head and the tail are kept. Invariants: at most `maxBytes` are held (plus one chunk while it
 * is taken in); head, gap and tail are the stream in order; nothing is left out while it fits; bytes are never decoded.
 */
import type { CappedOutput } from "@rolldeck/contracts/ports/sandbox";

export class OutputCollector {
  readonly #headMax: number;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  /** The newest bytes past the head, in a ring that grows to its full size as it is needed. */
  #ring = new Uint8Array(0);
  readonly #tailMax: number;
  #written = 0;

  /** @param maxBytes how much is kept of the stream: the first half (rounded up) from its head, the rest from its tail */
  constructor(maxBytes: number) {
    const max = Math.max(0, Math.floor(maxBytes));
    this.#headMax = Math.ceil(max / 2);
    this.#tailMax = max - this.#headMax;
  }

  /** Bytes seen so far. */
  get bytes(): number {
    return this.#headBytes + this.#written;
  }

  /** Takes a copy: the caller may use the chunk's memory again. */
  push(chunk: Uint8Array): void {
    const toHead = Math.min(chunk.length, this.#headMax - this.#headBytes);
    if (toHead > 0) {
      this.#head.push(chunk.slice(0, toHead));
      this.#headBytes += toHead;
    }
    if (toHead < chunk.length) this.#pushTail(chunk.subarray(Math.max(0, toHead)));
  }

  #pushTail(bytes: Uint8Array): void {
    const before = this.#written;
    this.#written += bytes.length;
    if (this.#tailMax === 0) return;
    this.#grow(Math.min(this.#tailMax, this.#written), before);
    const kept = bytes.length > this.#tailMax ? bytes.subarray(bytes.length - this.#tailMax) : bytes;
    const at = (this.#written - kept.length) % this.#tailMax;
    const first = Math.min(kept.length, this.#tailMax - at);
    this.#ring.set(kept.subarray(0, first), at);
    this.#ring.set(kept.subarray(first), 0);
  }

  /** Until the ring is full, byte n lies at n, so that a longer one is a copy. */
  #grow(needed: number, filled: number): void {
    if (this.#ring.length >= needed) return;
    const grown = new Uint8Array(Math.min(this.#tailMax, Math.max(needed, this.#ring.length * 2, 4096)));
    grown.set(this.#ring.subarray(0, Math.min(filled, this.#ring.length)));
    this.#ring = grown;
  }

  /** What is kept now; pushing may go on. */
  result(): CappedOutput {
    const tailBytes = Math.min(this.#written, this.#tailMax);
    const tail = new Uint8Array(tailBytes);
    const at = this.#tailMax === 0 ? 0 : (this.#written - tailBytes) % this.#tailMax;
    const first = Math.min(tailBytes, this.#tailMax - at);
    tail.set(this.#ring.subarray(at, at + first));
    tail.set(this.#ring.subarray(0, tailBytes - first), first);
    const gapBytes = this.#written - tailBytes;
    // Whole: one piece, so that a reader need not join.
    if (gapBytes === 0) return { head: joined([...this.#head, tail]), gapBytes, tail: empty, bytes: this.bytes };
    return { head: joined(this.#head), gapBytes, tail, bytes: this.bytes };
  }
}

const empty = new Uint8Array(0);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
