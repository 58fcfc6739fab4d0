/**
 * How a run's workers on the fleet are spoken to: where they listen now, by their rows, with the run's key. Whoever speaks to them finds
 * them here. Rows are read at most every half second and run, however many requests ask: a worker that was started again elsewhere is
 * found within that time.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { RunWorker } from "@rolldeck/contracts/fleet";
import { runKey } from "./run-key.ts";

export interface RunServersOptions {
  /** Of the deployment: what the keys of its workers are made of. */
  readonly secret: string;
  read(runId: string): Promise<RunWorker[]>;
  /** Monotonic milliseconds. */
  now(): number;
}
/** One that may move: its address is asked for with every request. */
export interface RunServer {
  readonly url: { readonly name: string; url(): Promise<string> };
  readonly apiKey: string;
}

const maxAgeMs = 500;
/** Runs remembered at most. */
const maxKept = 500;

export class RunServers {
  readonly #options: RunServersOptions;
  readonly #known = new Map<string, { readonly readAt: number; readonly workers: Promise<RunWorker[]> }>();

  constructor(options: RunServersOptions) {
    this.#options = options;
  }

  /**
   * @param name what it is called in messages
   * @param find of those whose containers run
   */
  serverOf(runId: string, name: string, find: (workers: readonly RunWorker[]) => RunWorker | undefined): RunServer {
    const url = async (): Promise<string> => {
      const found = find((await this.workersOf(runId)).filter(isThere))?.url;
      if (found != null) return found;
      throw new BoundaryError("model-server", "no_worker", `${name} is nowhere on the fleet now`, { retryable: true });
    };
    return { url: { name, url }, apiKey: runKey(this.#options.secret, runId) };
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

/** Its container runs, by what its supervisor saw last. */
const isThere = ({ state, url }: RunWorker): boolean => url !== null && (state === "starting" || state === "ready");
