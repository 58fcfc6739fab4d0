/**
 * How many sandboxes of a recipe should stand ready: what clients told will come, else as many as the last minute's pace takes while
 * one starts. Pure; the clock is an argument. Invariant: what one client tells, or opens, changes nothing of what another told.
 */
const windowMs = 60_000;
/** A start is this slow at worst: so long the ready ones must last. */
const coverMs = 3_000;
const maxRemembered = 4_096;
const maxTellers = 1_000;

export class Demand {
  readonly #opens: number[] = [];
  /** By client, the longest silent first. */
  readonly #told = new Map<string, { left: number; readonly untilMs: number }>();

  /** The client opened one, from the ready ones or not. */
  opened(client: string, nowMs: number): void {
    this.#opens.push(nowMs);
    if (this.#opens.length > maxRemembered) this.#opens.shift();
    const told = this.#told.get(client);
    if (told !== undefined) told.left = Math.max(0, told.left - 1);
  }

  /** The client will open so many more before then. Takes the place of what it told before. */
  tell(client: string, count: number, untilMs: number): void {
    this.#told.delete(client);
    this.#told.set(client, { left: count, untilMs });
    for (const silent of this.#told.keys()) {
      if (this.#told.size <= maxTellers) break;
      this.#told.delete(silent);
    }
  }

  target(nowMs: number, maxReady: number): number {
    while ((this.#opens[0] ?? nowMs) < nowMs - windowMs) this.#opens.shift();
    let told = 0;
    for (const [client, { left, untilMs }] of this.#told) {
      if (untilMs > nowMs) told += left;
      else this.#told.delete(client);
    }
    // One alone is no pace.
    const paced = this.#opens.length < 2 ? 0 : Math.ceil((this.#opens.length / windowMs) * coverMs);
    return Math.min(maxReady, Math.max(told, paced));
  }
}
