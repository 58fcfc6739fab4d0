/**
 * What a command prints, as it comes: its two ends, and how much it was. Invariants: memory is bounded by `maxBytes` (and one
 * chunk), however much comes and in however small pieces; text is well-formed, and no character at a border of the gap is half.
 */
export interface EndsText {
  readonly text: string;
  /** Bytes of all that came, where the middle is left out of `text`; else null. */
  readonly wholeBytes: number | null;
}

export class KeptEnds {
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #tail: Uint8Array[] = [];
  #tailBytes = 0;
  #bytes = 0;
  readonly #half: number;

  /** @param maxBytes kept, half of it for each end */
  constructor(maxBytes: number) {
    this.#half = Math.max(1, Math.floor(maxBytes / 2));
  }

  /** All that came. */
  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#bytes += chunk.length;
    const room = this.#half - this.#headBytes;
    const first = chunk.subarray(0, room);
    if (first.length > 0) {
      // Its own bytes: a slice would hold on to all of what it was cut from.
      this.#head.push(first.slice());
      this.#headBytes += first.length;
    }
    const rest = chunk.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(rest.slice(Math.max(0, rest.length - this.#half)));
    this.#tailBytes += Math.min(rest.length, this.#half);
    if (this.#tailBytes > 2 * this.#half || this.#tail.length > 256) this.#trim();
  }

  text(): EndsText {
    const head = joined(this.#head);
    this.#trim();
    const tail = joined(this.#tail);
    const gap = this.#bytes - head.length - tail.length;
    if (gap === 0) return { text: decode(joined([head, tail])), wholeBytes: null };
    const start = head.subarray(0, head.length - brokenEnd(head));
    const end = tail.subarray(brokenStart(tail));
    const cut = this.#bytes - start.length - end.length;
    const notice = `\n[... ${cut} of ${this.#bytes} bytes cut ...]\n`;
    return { text: decode(start) + notice + decode(end), wholeBytes: this.#bytes };
  }

  #trim(): void {
    const all = joined(this.#tail);
    this.#tail = [all.slice(Math.max(0, all.length - this.#half))];
    this.#tailBytes = Math.min(all.length, this.#half);
  }
}

const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
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
