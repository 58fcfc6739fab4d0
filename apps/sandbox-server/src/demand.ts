/**
 * How many sandboxes of a recipe should stand ready: what was told to come, else as many as the last minute's pace takes while one
 * starts. Pure; the clock is an argument.
 */
const windowMs = 60_000;
/** A start is this slow at worst: so long the ready ones must last. */
const coverMs = 3_000;
const maxRemembered = 4_096;

export class Demand {
  readonly #opens: number[] = [];
  #told: { left: number; untilMs: number } | null = null;

  /** One was opened, from the ready ones or not. */
  opened(nowMs: number): void {
    this.#opens.push(nowMs);
    if (this.#opens.length > maxRemembered) this.#opens.shift();
    if (this.#told !== null) this.#told.left = Math.max(0, this.#told.left - 1);
  }

  /** So many more will be opened before then. Takes the place of what was told before. */
  tell(count: number, untilMs: number): void {
    this.#told = { left: count, untilMs };
  }

  target(nowMs: number, maxReady: number): number {
    while ((this.#opens[0] ?? nowMs) < nowMs - windowMs) this.#opens.shift();
    const told = this.#told !== null && this.#told.untilMs > nowMs ? this.#told.left : 0;
    // One alone is no pace.
    const paced = this.#opens.length < 2 ? 0 : Math.ceil((this.#opens.length / windowMs) * coverMs);
    return Math.min(maxReady, Math.max(told, paced));
  }
}
