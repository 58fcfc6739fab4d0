/** Faults to order: the next `times` requests whose path matches go wrong in the way asked for. */
export interface Failure {
  /** Matched against the path: "/api/v1/optim_step". Default: every path. */
  readonly path?: RegExp;
  /**
   * `error`: answers 500. `busy`: answers 429. `hang`: never answers. `reset`: cuts the connection.
   * `lost-answer`: does the work, then cuts the connection. `lost-future`: answers 410. `answer`: says `text` with `status`.
   */
  readonly kind: "error" | "busy" | "hang" | "reset" | "lost-answer" | "lost-future" | "answer";
  /** Default 1. */
  readonly times?: number;
  readonly status?: number;
  readonly text?: string;
  /** Retry-After header, as it stands. */
  readonly retryAfter?: string;
}

export class Failures {
  readonly #ordered: { failure: Failure; left: number }[] = [];

  order(failure: Failure): void {
    this.#ordered.push({ failure, left: failure.times ?? 1 });
  }

  clear(): void {
    this.#ordered.length = 0;
  }

  /** The failure that this request is to meet, if any; counts it. */
  next(path: string): Failure | null {
    const due = this.#ordered.find(({ failure, left }) => left > 0 && (failure.path?.test(path) ?? true));
    if (!due) return null;
    due.left--;
    return due.failure;
  }
}
