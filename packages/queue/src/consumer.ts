/**
 * Takes jobs of one queue. Delivery is at least once: a handler may run twice for one job, together or one after the other,
 * and must claim its row before it acts. A handler that throws ends its job: retries belong to the planner alone.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type JobName, type JobPayload, jobs, type QueueName } from "@rolldeck/contracts/jobs";
import type { JobWorker, QueueConnection } from "./connection.ts";

export type JobHandlers = {
  readonly [N in JobName]?: (payload: JobPayload<N>, signal: AbortSignal) => Promise<void>;
};
export interface ConsumerOptions {
  readonly queue: QueueName;
  /** Jobs of this queue that run at once in this process. */
  readonly concurrency: number;
  /** Handlers by job name. The signal aborts when the consumer gives up waiting for it in `close`. */
  readonly handle: JobHandlers;
  /** Lost connections, refused payloads and whatever a handler threw. Must not throw. */
  readonly onError: (error: Error) => void;
  /**
   * Default 15 000: as long as a row's lease. Each check and each renewal writes every job that runs, so a queue of thousands whose
   * rows are watched by another than the queue is better off with longer ones.
   */
  readonly lockMs?: number;
  /** Default 5 000. */
  readonly stalledCheckMs?: number;
}

/** After the abort, time for handlers to come to their end, in milliseconds. */
const abortGraceMs = 1000;

export class Consumer {
  readonly #options: ConsumerOptions;
  readonly #worker: JobWorker;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;

  constructor(connection: QueueConnection, options: ConsumerOptions) {
    this.#options = options;
    this.#worker = connection.openWorker(options.queue, {
      concurrency: options.concurrency,
      lockMs: options.lockMs ?? 15_000,
      stalledCheckMs: options.stalledCheckMs ?? 5_000,
      process: (name, data, signal) => this.#process(name, data, signal),
      onError: options.onError,
    });
  }

  /** Jobs that run now. */
  get active(): number {
    return this.#running.size;
  }

  start(): void {
    this.#worker.run().catch((error: unknown) => this.#options.onError(asError(error)));
  }

  /**
   * Takes no more jobs, waits up to `graceMs` for those that run, then aborts their signals and leaves them: their locks
   * expire and the jobs are delivered elsewhere. Idempotent.
   */
  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    await this.#worker.pause();
    const done = await this.#settled(graceMs);
    if (!done) {
      this.#stop.abort(new Error(`queue ${this.#options.queue} is closing`));
      await this.#settled(abortGraceMs);
    }
    await this.#worker.close(!done);
  }

  async #settled(withinMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, withinMs, false);
    });
    const all = Promise.allSettled([...this.#running]).then(() => true as const);
    const done = await Promise.race([all, late]);
    clearTimeout(timer);
    return done;
  }

  #process(name: string, data: unknown, signal: AbortSignal): Promise<void> {
    const run = this.#dispatch(name, data, AbortSignal.any([signal, this.#stop.signal]));
    const tracked = run.catch((error: unknown) => this.#options.onError(asError(error)));
    this.#running.add(tracked);
    void tracked.finally(() => this.#running.delete(tracked));
    return run.catch((error: unknown) => {
      // What we cut short has not failed: never answering leaves the job locked until another worker may have it.
      if (this.#stop.signal.aborted) return new Promise<never>(() => {});
      throw error;
    });
  }

  async #dispatch(name: string, data: unknown, signal: AbortSignal): Promise<void> {
    const known = parseJob(name, data, this.#options.queue);
    await callHandler(this.#options.handle, known.name, known.payload, signal);
  }
}

/** @throws BoundaryError("infrastructure", "bad_job") for a name or payload the catalogue does not know. */
function parseJob(name: string, data: unknown, queue: QueueName): { name: JobName; payload: unknown } {
  const known = (Object.keys(jobs) as JobName[]).find((each) => each === name && jobs[each].queue === queue);
  const parsed = known && jobs[known].payload.safeParse(data);
  if (!known || !parsed?.success) {
    throw new BoundaryError("infrastructure", "bad_job", `queue ${queue} held a job that is not in the catalogue`, {
      cause: parsed?.error ?? new Error(`unknown job name ${JSON.stringify(name.slice(0, 100))}`),
    });
  }
  return { name: known, payload: parsed.data };
}

async function callHandler(handle: JobHandlers, name: JobName, payload: unknown, signal: AbortSignal): Promise<void> {
  // The payload was parsed with this very name's schema; TypeScript can't follow the correlation.
  const handler = handle[name] as ((payload: unknown, signal: AbortSignal) => Promise<void>) | undefined;
  if (!handler) {
    throw new BoundaryError("infrastructure", "no_handler", `nobody here handles job ${name}`);
  }
  await handler(payload, signal);
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
