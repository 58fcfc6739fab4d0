/** What a command prints, as it comes: its two ends, and how much it was. Invariants: as OutputCollector's. */
import { OutputCollector } from "@rolldeck/agent/core/collect-output";

export interface EndsText {
  readonly text: string;
  /** Bytes of all that came, where the middle is left out of `text`; else null. */
  readonly wholeBytes: number | null;
}

export class KeptEnds {
  readonly #collector: OutputCollector;

  /** @param maxBytes kept, half of it for each end */
  constructor(maxBytes: number) {
    const half = Math.max(1, Math.floor(maxBytes / 2));
    this.#collector = new OutputCollector({ headBytes: half, tailBytes: half });
  }

  /** All that came. */
  get bytes(): number {
    return this.#collector.bytes;
  }

  push(chunk: Uint8Array): void {
    this.#collector.push(chunk);
  }

  text(): EndsText {
    const { head, gapBytes, tail, bytes } = this.#collector.collected();
    if (gapBytes === 0) return { text: head, wholeBytes: null };
    return { text: `${head}\n[... ${gapBytes} of ${bytes} bytes cut ...]\n${tail}`, wholeBytes: bytes };
  }
}
