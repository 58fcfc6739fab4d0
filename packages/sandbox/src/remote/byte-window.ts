/**
 * Flow control of one channel of a stream. A sender spends credit and waits when it has none; a receiver grants it as its reader
 * takes bytes. Invariant: at most `windowBytes` of a channel are on their way or unread, whatever either side does.
 */
import { initialCreditBytes, maxPayloadBytes, ProtocolError } from "./frames.ts";

const windowBytes = 256 * 1024;

export class ReceiveWindow implements AsyncIterable<Uint8Array> {
  readonly #grant: (bytes: number) => void;
  readonly #chunks: Uint8Array[] = [];
  #allowed = initialCreditBytes;
  #read = 0;
  #opened = false;
  #over: { readonly error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  constructor(grant: (bytes: number) => void) {
    this.#grant = grant;
  }

  /** @throws ProtocolError when more comes than was granted */
  accept(bytes: Uint8Array): void {
    // Empty ones cost no credit: kept, they would have no bound.
    if (this.#over !== null || bytes.length === 0) return;
    if (bytes.length > this.#allowed) throw new ProtocolError("more data than was granted");
    this.#allowed -= bytes.length;
    this.#chunks.push(bytes);
    this.#wake?.();
  }

  /** No more comes; with an error, the reader hears of it once it has read what came. Only the first call counts. */
  end(error: Error | null): void {
    if (this.#over !== null) return;
    this.#over = { error };
    this.#wake?.();
  }

  /** Lets the sender fill the whole window before anyone reads. */
  open(): void {
    if (this.#opened) return;
    this.#opened = true;
    this.#allow(windowBytes - initialCreditBytes);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    this.open();
    while (true) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.#read += chunk.length;
        if (this.#read >= windowBytes / 2) {
          this.#allow(this.#read);
          this.#read = 0;
        }
      } else if (this.#over !== null) {
        if (this.#over.error !== null) throw this.#over.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = null;
      }
    }
  }

  #allow(bytes: number): void {
    if (this.#over !== null) return;
    this.#allowed += bytes;
    this.#grant(bytes);
  }
}

export class SendWindow {
  readonly #send: (bytes: Uint8Array) => void;
  #credit = initialCreditBytes;
  #over: { readonly error: Error | null } | null = null;
  #waiting: (() => void)[] = [];

  constructor(send: (bytes: Uint8Array) => void) {
    this.#send = send;
  }

  grant(bytes: number): void {
    // The other side's word: a bound keeps the sum exact.
    this.#credit = Math.min(this.#credit + bytes, 2 ** 40);
    this.#wakeAll();
  }

  /** Nothing more can be sent; waiting writes fail with the error, or end quietly when there is none. */
  end(error: Error | null): void {
    if (this.#over !== null) return;
    this.#over = { error };
    this.#wakeAll();
  }

  /** Resolves when all of it was handed to the connection. One at a time. */
  async write(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      if (this.#over !== null) {
        if (this.#over.error !== null) throw this.#over.error;
        return;
      }
      const size = Math.min(bytes.length - at, this.#credit, maxPayloadBytes);
      if (size === 0) {
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
        continue;
      }
      this.#credit -= size;
      this.#send(bytes.subarray(at, at + size));
      at += size;
    }
  }

  #wakeAll(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
