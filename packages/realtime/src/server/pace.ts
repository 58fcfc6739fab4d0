/** How fast a stream may go: a bucket that fills with time. Pure: the clock is an argument, milliseconds. */
export class Pace {
  #level: number;
  #at: number | null = null;

  /** @param burst bytes that may go at once after a pause */
  constructor(
    private readonly bytesPerSecond: number,
    private readonly burst: number,
  ) {
    this.#level = burst;
  }

  /** Takes so many bytes. @returns milliseconds to wait before they go */
  take(bytes: number, nowMs: number): number {
    const elapsed = this.#at === null ? 0 : Math.max(0, nowMs - this.#at);
    this.#at = nowMs;
    this.#level = Math.min(this.burst, this.#level + (elapsed / 1000) * this.bytesPerSecond) - bytes;
    return this.#level >= 0 ? 0 : (-this.#level / this.bytesPerSecond) * 1000;
  }
}
