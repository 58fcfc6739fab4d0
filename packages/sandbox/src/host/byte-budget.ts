/** How many bytes of calls under way are kept in memory at once, whoever's they are. Invariant: what a call took comes back when it ends. */
import { BoundaryError } from "@rolldeck/contracts/errors";

/** @throws BoundaryError("sandbox", "full") when there is no room for so many more */
export type TakeBytes = (bytes: number) => void;

export class ByteBudget {
  readonly #maxBytes: number;
  #taken = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Runs one call, which says what it keeps as it comes. */
  async lend<T>(work: (take: TakeBytes) => Promise<T>): Promise<T> {
    let own = 0;
    try {
      return await work((bytes) => {
        if (this.#taken + bytes > this.#maxBytes) {
          const message = `calls under way on this host keep ${this.#taken} bytes, of ${this.#maxBytes} there may be`;
          throw new BoundaryError("sandbox", "full", message, { retryable: true, retryAfterMs: 1000 });
        }
        this.#taken += bytes;
        own += bytes;
      });
    } finally {
      this.#taken -= own;
    }
  }
}
