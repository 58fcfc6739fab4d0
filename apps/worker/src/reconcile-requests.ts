/**
 * Asks for reconciles through the queue, at most one request in flight and one pending per run: a burst of edges costs one
 * job. A run that this process reconciles at the moment is not asked for: what was committed before that reconcile looks at the
 * run's wake once more is its own business, and only what comes after is asked for, when it has ended. A lost request is no harm:
 * the wake is in the row and the sweep finds it.
 */
export class ReconcileRequests {
  readonly #add: (runId: string) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #inFlight = new Set<string>();
  readonly #pending = new Set<string>();
  readonly #here = new Map<string, { reconciles: number; asked: boolean }>();

  constructor(add: (runId: string) => Promise<void>, onError: (error: unknown) => void) {
    this.#add = add;
    this.#onError = onError;
  }

  /** The change that is to be seen is committed, with the run's wake. */
  request(runId: string): void {
    const here = this.#here.get(runId);
    if (here !== undefined) {
      here.asked = true;
      return;
    }
    if (this.#inFlight.has(runId)) {
      this.#pending.add(runId);
      return;
    }
    this.#inFlight.add(runId);
    void this.#send(runId);
  }

  /** Whether this process reconciles the run at the moment. */
  isHere(runId: string): boolean {
    return this.#here.has(runId);
  }

  /**
   * Reconciles a run in this process. `work` calls `looks` each time before it reads the run's wake, and goes on when that rose.
   * @throws whatever `work` throws
   */
  async here(runId: string, work: (looks: () => void) => Promise<void>): Promise<void> {
    const here = this.#here.get(runId) ?? { reconciles: 0, asked: false };
    this.#here.set(runId, here);
    here.reconciles += 1;
    try {
      await work(() => {
        here.asked = false;
      });
    } finally {
      here.reconciles -= 1;
      if (here.reconciles === 0) this.#here.delete(runId);
      if (here.reconciles === 0 && here.asked) this.request(runId);
    }
  }

  async #send(runId: string): Promise<void> {
    try {
      do {
        this.#pending.delete(runId);
        await this.#add(runId);
      } while (this.#pending.has(runId));
    } catch (error) {
      this.#pending.delete(runId);
      this.#onError(error);
    } finally {
      this.#inFlight.delete(runId);
    }
  }
}
