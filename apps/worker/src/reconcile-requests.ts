/**
 * Asks for reconciles through the queue, at most one request in flight and one pending per run: a burst of edges costs one
 * job. A lost request is no harm: the wake is in the row and the sweep finds it.
 */
export class ReconcileRequests {
  readonly #add: (runId: string) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #inFlight = new Set<string>();
  readonly #pending = new Set<string>();

  constructor(add: (runId: string) => Promise<void>, onError: (error: unknown) => void) {
    this.#add = add;
    this.#onError = onError;
  }

  request(runId: string): void {
    if (this.#inFlight.has(runId)) {
      this.#pending.add(runId);
      return;
    }
    this.#inFlight.add(runId);
    void this.#send(runId);
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
