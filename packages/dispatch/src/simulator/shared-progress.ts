/**
 * Work that shares one resource evenly: each piece advances at a rate that depends on how many there are, worked out anew at
 * every change. Invariant: one number, how far a piece would have come since the beginning, serves all of them, because all
 * advance alike; so a change costs the same whatever their number.
 */
import type { EventQueue } from "./event-queue.ts";

export interface Piece {
  /** Where the common progress stands when it is done. */
  readonly endsAt: number;
  readonly done: () => void;
}

export class SharedProgress {
  readonly #queue: EventQueue;
  readonly #rate: (pieces: number) => number;
  readonly #pieces = new Set<Piece>();
  #progress = 0;
  #since: number;
  #halted = false;
  #round = 0;

  /** @param rate units that each of so many pieces does per millisecond, above 0 */
  constructor(queue: EventQueue, rate: (pieces: number) => number) {
    this.#queue = queue;
    this.#rate = rate;
    this.#since = queue.now;
  }

  get size(): number {
    return this.#pieces.size;
  }

  /** @param done called once when the piece's units are done, unless it was removed */
  add(units: number, done: () => void): Piece {
    this.#advance();
    const piece: Piece = { endsAt: this.#progress + units, done };
    this.#pieces.add(piece);
    this.#schedule();
    return piece;
  }

  remove(piece: Piece): void {
    this.#advance();
    this.#pieces.delete(piece);
    this.#schedule();
  }

  /** Nothing advances while halted. */
  halt(halted: boolean): void {
    this.#advance();
    this.#halted = halted;
    this.#schedule();
  }

  #currentRate(): number {
    return this.#halted || this.#pieces.size === 0 ? 0 : this.#rate(this.#pieces.size);
  }

  #advance(): void {
    this.#progress += (this.#queue.now - this.#since) * this.#currentRate();
    this.#since = this.#queue.now;
  }

  #schedule(): void {
    const rate = this.#currentRate();
    const round = ++this.#round;
    if (rate === 0) return;
    let next: Piece | null = null;
    for (const piece of this.#pieces) if (next === null || piece.endsAt < next.endsAt) next = piece;
    if (next === null) return;
    const due = next;
    this.#queue.after((due.endsAt - this.#progress) / rate, () => {
      if (round !== this.#round) return;
      this.#advance();
      this.#pieces.delete(due);
      this.#schedule();
      due.done();
    });
  }
}
