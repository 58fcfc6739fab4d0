/** Token ids that only grow, four bytes each: a trajectory of 32k tokens takes 128 kB however many turns read it. */
export class TokenList {
  #ids = new Uint32Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(tokens: ArrayLike<number>): void {
    const end = this.#length + tokens.length;
    if (end > this.#ids.length) this.#grow(end);
    this.#ids.set(tokens, this.#length);
    this.#length = end;
  }

  at(position: number): number {
    return this.#ids[position] ?? 0;
  }

  slice(start: number, end: number): number[] {
    return Array.from(this.#ids.subarray(start, Math.min(end, this.#length)));
  }

  /** Forgets everything from there on. */
  cutAt(length: number): void {
    this.#length = Math.min(this.#length, length);
  }

  /** A quarter more than needed: growing costs a constant per token, and little lies unused. */
  #grow(needed: number): void {
    const larger = new Uint32Array(Math.max(256, Math.ceil(needed * 1.25)));
    larger.set(this.#ids.subarray(0, this.#length));
    this.#ids = larger;
  }
}
