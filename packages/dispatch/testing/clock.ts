/** Virtual time with a seeded dice: events in order of time, equal times in order of entry. */
import { mixHash } from "../src/mix-hash.ts";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class Clock {
  now = 1_000_000;
  readonly #seed: number;
  readonly #entries: Entry[] = [];
  #order = 0;
  #drawn = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Uniform in [0, 1). */
  random(): number {
    return mixHash(this.#seed, this.#drawn++) / 2 ** 32;
  }

  /** Uniform in [low, high], whole. */
  between(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  after(delayMs: number, run: () => void): void {
    const entry = { at: this.now + delayMs, order: this.#order++, run };
    const at = this.#entries.findIndex((other) => other.at > entry.at);
    if (at === -1) this.#entries.push(entry);
    else this.#entries.splice(at, 0, entry);
  }

  /** Time of the next event; null when none is left. */
  get nextAt(): number | null {
    return this.#entries[0]?.at ?? null;
  }

  /** Runs the next event at its time. */
  step(): void {
    const entry = this.#entries.shift();
    if (entry === undefined) return;
    this.now = entry.at;
    entry.run();
  }
}
