/**
 * Where the fleet's workers of a run listen now, by its rows. Read at most every half second and run, however many requests ask:
 * a worker that was started again elsewhere is found within that time.
 */
import type { RunWorker } from "@rolldeck/db/fleet/run-workers";

export interface FleetAddressOptions {
  read(runId: string): Promise<RunWorker[]>;
  /** Monotonic milliseconds. */
  now(): number;
}

const maxAgeMs = 500;
/** Runs remembered at most. */
const maxKept = 500;

export class FleetAddresses {
  readonly #options: FleetAddressOptions;
  readonly #known = new Map<string, { readonly readAt: number; readonly workers: Promise<RunWorker[]> }>();

  constructor(options: FleetAddressOptions) {
    this.#options = options;
  }

  /** @throws what the read threw */
  workersOf(runId: string): Promise<RunWorker[]> {
    const now = this.#options.now();
    const known = this.#known.get(runId);
    if (known !== undefined && now - known.readAt <= maxAgeMs) return known.workers;
    const workers = this.#options.read(runId);
    this.#known.delete(runId);
    this.#known.set(runId, { readAt: now, workers });
    // One that failed is no answer for the next who asks.
    workers.catch(() => {
      if (this.#known.get(runId)?.workers === workers) this.#known.delete(runId);
    });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= maxKept) break;
      this.#known.delete(oldest);
    }
    return workers;
  }
}
