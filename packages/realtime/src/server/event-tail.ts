/**
 * Reads the event log once for all who follow it in this process: a notice (or a reconnect, or the sweep) makes it read what
 * follows the newest event it has, and wake the followers. Followers pull; nothing is queued for a slow one.
 *
 * Invariant: `ring` holds consecutive events, the last of them `tail`; a follower behind the ring reads the rows itself.
 */
import type { RunEvent } from "@rolldeck/contracts/events";
import { maxEventsPerMessage } from "@rolldeck/contracts/wire/socket";

/** Events after `after`, oldest first, and the run's newest `seq`; null when there is no such run. */
export type ReadEvents = (
  runId: string,
  after: number,
  limit: number,
) => Promise<{ readonly events: readonly RunEvent[]; readonly head: number } | null>;

export interface EventTailOptions {
  readonly readEvents: ReadEvents;
  readonly onError: (error: unknown) => void;
  /** Least time between two reads of one run's log, ms: what commits meanwhile is coalesced. */
  readonly coalesceMs?: number;
  /** Events kept per followed run. */
  readonly ringSize?: number;
}

interface RunTail {
  ring: RunEvent[];
  head: number;
  followers: Set<() => void>;
  reading: boolean;
  again: boolean;
  lastReadAt: number;
}

export class EventTail {
  readonly #options: Required<EventTailOptions>;
  readonly #runs = new Map<string, RunTail>();

  constructor(options: EventTailOptions) {
    this.#options = { coalesceMs: 20, ringSize: 2_000, ...options };
  }

  /** `wake` is called whenever the run may have events after the follower's cursor. */
  follow(runId: string, head: number, wake: () => void): () => void {
    const run = this.#runs.get(runId) ?? newTail(head);
    this.#runs.set(runId, run);
    run.followers.add(wake);
    return () => {
      run.followers.delete(wake);
      if (run.followers.size === 0 && this.#runs.get(runId) === run) this.#runs.delete(runId);
    };
  }

  /** A commit raised the run's newest `seq` to `seq`. */
  noticed(runId: string, seq: number): void {
    const run = this.#runs.get(runId);
    if (!run || seq <= run.head) return;
    void this.#read(runId, run);
  }

  /** Read now what the run has after the newest event known here. */
  look(runId: string): void {
    const run = this.#runs.get(runId);
    if (run) void this.#read(runId, run);
  }

  /** Notices may have been lost: look at every followed run. */
  lookAgain(): void {
    for (const [runId, run] of this.#runs) void this.#read(runId, run);
  }

  /** @param after the run's head, as just read. Resolves when there may be more, or after `waitMs`. */
  waitFor(runId: string, after: number, waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        leave();
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      const leave = this.follow(runId, after, () => this.headOf(runId) > after && done());
      // Another follower may have brought the tail past `after` already; then nothing would wake this one.
      if (this.headOf(runId) > after) done();
      else this.look(runId);
    });
  }

  /** Newest `seq` this process knows of; 0 for a run nobody follows. */
  headOf(runId: string): number {
    return this.#runs.get(runId)?.head ?? 0;
  }

  /** Up to `maxEventsPerMessage` events after `after`, from memory when they are still there. */
  async after(runId: string, after: number): Promise<readonly RunEvent[]> {
    const run = this.#runs.get(runId);
    const first = run?.ring[0]?.seq;
    if (run && first !== undefined && first <= after + 1 && after < run.head)
      return run.ring.slice(after + 1 - first, after + 1 - first + maxEventsPerMessage);
    const page = await this.#options.readEvents(runId, after, maxEventsPerMessage);
    return page?.events ?? [];
  }

  async #read(runId: string, run: RunTail): Promise<void> {
    run.again = true;
    if (run.reading) return;
    run.reading = true;
    try {
      while (run.again && run.followers.size > 0) {
        const wait = run.lastReadAt + this.#options.coalesceMs - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        run.again = false;
        run.lastReadAt = performance.now();
        await this.#readOnce(runId, run);
      }
    } catch (error) {
      // The rows stay: the next notice, the next reconnect or the sweep reads them.
      this.#options.onError(error);
    } finally {
      run.reading = false;
    }
  }

  async #readOnce(runId: string, run: RunTail): Promise<void> {
    const page = await this.#options.readEvents(runId, run.head, maxEventsPerMessage);
    const last = page?.events.at(-1);
    if (!page || !last) return;
    run.ring.push(...page.events);
    if (run.ring.length > this.#options.ringSize) run.ring = run.ring.slice(-this.#options.ringSize);
    run.head = last.seq;
    if (last.seq < page.head) run.again = true;
    for (const wake of run.followers) wake();
  }
}

const newTail = (head: number): RunTail => ({
  ring: [],
  head,
  followers: new Set(),
  reading: false,
  again: false,
  lastReadAt: 0,
});
