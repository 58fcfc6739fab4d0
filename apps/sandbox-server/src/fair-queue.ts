/**
 * A bounded queue that is fair to runs: they have their turns one after another, and inside a run the first come is first. Pure.
 * Invariants: a run that has something that fits is served before any other is served twice; nothing is lost or served twice.
 */
export interface Waiting<T> {
  readonly run: string;
  readonly item: T;
  readonly sinceMs: number;
}

export class FairQueue<T> {
  readonly #maxWaiting: number;
  /** In the order of their turns. */
  readonly #runs = new Map<string, Waiting<T>[]>();
  #size = 0;

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  get size(): number {
    return this.#size;
  }

  /** False: it is full. */
  add(waiting: Waiting<T>): boolean {
    if (this.#size >= this.#maxWaiting) return false;
    const line = this.#runs.get(waiting.run);
    if (line === undefined) this.#runs.set(waiting.run, [waiting]);
    else line.push(waiting);
    this.#size += 1;
    return true;
  }

  /** False: it is not in it. */
  remove(waiting: Waiting<T>): boolean {
    const line = this.#runs.get(waiting.run);
    const at = line?.indexOf(waiting) ?? -1;
    if (line === undefined || at < 0) return false;
    line.splice(at, 1);
    if (line.length === 0) this.#runs.delete(waiting.run);
    this.#size -= 1;
    return true;
  }

  /** Takes out the first, by turns, that `fits`. A run whose first does not fit keeps its turn. Null: none fits. */
  next(fits: (waiting: Waiting<T>) => boolean): Waiting<T> | null {
    for (const [run, line] of this.#runs) {
      const first = line[0];
      if (first === undefined || !fits(first)) continue;
      line.shift();
      this.#runs.delete(run);
      if (line.length > 0) this.#runs.set(run, line);
      this.#size -= 1;
      return first;
    }
    return null;
  }

  /** The one that waits longest. */
  oldest(): Waiting<T> | null {
    let oldest: Waiting<T> | null = null;
    for (const [first] of this.#runs.values()) {
      if (first !== undefined && (oldest === null || first.sinceMs < oldest.sinceMs)) oldest = first;
    }
    return oldest;
  }
}
