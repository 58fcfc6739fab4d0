/** Virtual time: events in order of time, those of one time in order of entry. A binary heap. */
interface Entry {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class EventQueue {
  /** Milliseconds of virtual time. */
  now: number;
  readonly #heap: Entry[] = [];
  #order = 0;

  constructor(now: number) {
    this.now = now;
  }

  /** Never runs before events that are due at the same time already. */
  after(delayMs: number, run: () => void): void {
    this.#push({ at: this.now + Math.max(0, delayMs), order: this.#order++, run });
  }

  /** Runs the next event at its time. @returns false when none is left */
  step(): boolean {
    const next = this.#pop();
    if (next === undefined) return false;
    this.now = next.at;
    next.run();
    return true;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, entry)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const child = earlierChild(heap, at);
      const entry = child === null ? undefined : heap[child];
      if (child === null || entry === undefined || isBefore(last, entry)) break;
      heap[at] = entry;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function earlierChild(heap: readonly Entry[], at: number): number | null {
  const left = heap[2 * at + 1];
  const right = heap[2 * at + 2];
  if (left === undefined) return null;
  return right !== undefined && isBefore(right, left) ? 2 * at + 2 : 2 * at + 1;
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
