/**
 * Many small calls become one statement: items that arrive in one tick, or while a statement is under way, go together. Each
 * call gets its own answer; a failed statement fails the calls it carried.
 */
interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export class Coalescer<Item, Answer> {
  #waiting: Waiting<Item, Answer>[] = [];
  #running = false;

  /** @param run answers in the order of its items; `keyOf` names items that must not share a statement */
  constructor(
    readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>,
    readonly keyOf: (item: Item) => string,
    readonly maxItems = 256,
  ) {}

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#running) {
        this.#running = true;
        setImmediate(() => void this.#drain());
      }
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      try {
        const answers = await this.run(batch.map(({ item }) => item));
        if (answers.length !== batch.length)
          throw new RangeError(`${answers.length} answers for ${batch.length} items`);
        answers.forEach((answer, place) => {
          batch[place]?.resolve(answer);
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = false;
  }

  #take(): Waiting<Item, Answer>[] {
    const keys = new Set<string>();
    const batch: Waiting<Item, Answer>[] = [];
    const left: Waiting<Item, Answer>[] = [];
    for (const waiting of this.#waiting) {
      const key = this.keyOf(waiting.item);
      if (batch.length >= this.maxItems || keys.has(key)) left.push(waiting);
      else batch.push(waiting);
      keys.add(key);
    }
    this.#waiting = left;
    return batch;
  }
}
