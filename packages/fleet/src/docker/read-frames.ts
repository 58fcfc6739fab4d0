/** Lines of a container's output. It comes in frames: eight bytes (stream, three zeros, length), then so many bytes. */

/** A line longer than this is cut: a log is for people. */
const maxLine = 4_000;

/** Of a whole answer. */
export function readFrames(answer: Uint8Array): string[] {
  const lines = new FramedLines();
  return [...lines.push(answer), ...lines.end()];
}

/** Of one that comes in pieces, of any size. */
export class FramedLines {
  #bytes: Buffer = Buffer.alloc(0);
  readonly #rest = ["", "", ""];
  readonly #decoders = [0, 1, 2].map(() => new TextDecoder());

  push(piece: Uint8Array): string[] {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    const lines: string[] = [];
    while (this.#bytes.length >= 8) {
      const end = 8 + this.#bytes.readUInt32BE(4);
      if (this.#bytes.length < end) break;
      const stream = Math.min(2, this.#bytes[0] ?? 0);
      lines.push(...this.#take(stream, this.#bytes.subarray(8, end)));
      this.#bytes = this.#bytes.subarray(end);
    }
    return lines;
  }

  /** What was no whole line. */
  end(): string[] {
    return this.#rest.filter((text) => text !== "").map((text) => text.slice(0, maxLine));
  }

  #take(stream: number, bytes: Uint8Array): string[] {
    const text = (this.#rest[stream] ?? "") + (this.#decoders[stream]?.decode(bytes, { stream: true }) ?? "");
    const lines = text.split("\n");
    this.#rest[stream] = (lines.pop() ?? "").slice(0, maxLine);
    return lines.map((line) => line.replace(/\r$/, "").slice(0, maxLine));
  }
}
