/** Names by how they begin: of those that begin in some way, how many there are, how many pass, and which came first; each in a few steps. */
export interface Beginning {
  readonly count: number;
  readonly passing: number;
  /** The one that came first of those that begin so. */
  readonly first: string;
}

export class NameBeginnings {
  /** In the order of their code units, so that those that begin alike stand together. */
  readonly #sorted: readonly { readonly name: string; readonly place: number }[];
  /** How many pass of those before each place of `#sorted`. */
  readonly #passing: Int32Array;
  /** A tree of the least `place` under each node: the leaves are `#sorted`, from its length on. */
  readonly #least: Int32Array;
  readonly #names: readonly string[];

  constructor(names: Iterable<string>, passes: (name: string) => boolean) {
    this.#names = [...names];
    this.#sorted = this.#names
      .map((name, place) => ({ name, place }))
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    const size = this.#sorted.length;
    this.#passing = new Int32Array(size + 1);
    this.#least = new Int32Array(2 * size);
    for (const [at, { name, place }] of this.#sorted.entries()) {
      this.#passing[at + 1] = (this.#passing[at] ?? 0) + (passes(name) ? 1 : 0);
      this.#least[size + at] = place;
    }
    for (let node = size - 1; node > 0; node -= 1) {
      this.#least[node] = Math.min(this.#least[2 * node] ?? 0, this.#least[2 * node + 1] ?? 0);
    }
  }

  /** Null: none begins so. */
  find(beginning: string): Beginning | null {
    const from = this.#firstWhere((name) => name >= beginning);
    const to = this.#firstWhere((name) => name > beginning && !name.startsWith(beginning));
    if (from === to) return null;
    const passing = (this.#passing[to] ?? 0) - (this.#passing[from] ?? 0);
    return { count: to - from, passing, first: this.#names[this.#leastOf(from, to)] ?? "" };
  }

  /** Place in `#sorted` of the first for which it holds; it must hold for all behind that. */
  #firstWhere(holds: (name: string) => boolean): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(this.#sorted[middle]?.name ?? "")) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #leastOf(from: number, to: number): number {
    const size = this.#sorted.length;
    let least = size;
    for (let [left, right] = [from + size, to + size]; left < right; left >>= 1, right >>= 1) {
      if (left & 1) least = Math.min(least, this.#least[left++] ?? size);
      if (right & 1) least = Math.min(least, this.#least[--right] ?? size);
    }
    return least;
  }
}
