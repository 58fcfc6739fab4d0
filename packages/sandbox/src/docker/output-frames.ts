/**
 * Parts of a multiplexed output: eight bytes (stream, three zeros, length) and then so many bytes. Holds at most one header;
 * what it hands on are views of the chunk it was given.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";

export type OutputStream = "stdout" | "stderr";

export class OutputFrames {
  readonly #header = new Uint8Array(8);
  #headerBytes = 0;
  #left = 0;
  #stream: OutputStream = "stdout";

  /** @throws BoundaryError("sandbox", "unavailable") when the bytes are no such stream */
  push(chunk: Uint8Array, take: (stream: OutputStream, bytes: Uint8Array) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const end = Math.min(chunk.length, at + this.#left);
        take(this.#stream, chunk.subarray(at, end));
        this.#left -= end - at;
        at = end;
        continue;
      }
      const part = chunk.subarray(at, at + 8 - this.#headerBytes);
      this.#header.set(part, this.#headerBytes);
      this.#headerBytes += part.length;
      at += part.length;
      if (this.#headerBytes === 8) this.#begin();
    }
  }

  #begin(): void {
    const [kind, ...zeros] = this.#header.subarray(0, 4);
    if (kind === undefined || kind > 2 || zeros.some((byte) => byte !== 0)) {
      throw new BoundaryError("sandbox", "unavailable", "the Docker daemon sent output that is not framed", {
        retryable: true,
      });
    }
    this.#stream = kind === 2 ? "stderr" : "stdout";
    this.#left = new DataView(this.#header.buffer).getUint32(4);
    this.#headerBytes = 0;
  }
}
