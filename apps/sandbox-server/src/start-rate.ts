/** How many sandboxes may start in a second: a bucket that holds one second's worth. Pure; the clock is an argument. */
export class StartRate {
  readonly #perSecond: number;
  #tokens: number;
  #atMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#tokens = Math.max(1, perSecond);
    this.#atMs = nowMs;
  }

  ready(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#tokens >= 1;
  }

  /** Of a rate that is ready. */
  take(nowMs: number): void {
    this.#refill(nowMs);
    this.#tokens -= 1;
  }

  #refill(nowMs: number): void {
    const passedMs = Math.max(0, nowMs - this.#atMs);
    this.#tokens = Math.min(Math.max(1, this.#perSecond), this.#tokens + (passedMs / 1000) * this.#perSecond);
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}
