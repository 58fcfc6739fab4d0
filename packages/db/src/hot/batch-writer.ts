/**
 * Group commit for everything stage jobs write. One statement per batch; entries resolve when it has committed, so what a turn
 * wrote is durable before the next turn begins. Invariants: at most one entry per rollout is under way; a bad entry fails
 * alone; after a lost connection the writer knows whether the batch is in before it answers.
 */
import { BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { asBoundaryError, isCollision, isDatabaseAway } from "../database-error.ts";
import { newId } from "../new-id.ts";
import { BatchLane, type BatchResult, type CommittedRun } from "./batch-lane.ts";
import { type PreparedEntry, prepareEntry } from "./batch-rows.ts";
import type { HotEntry } from "./entries.ts";

export type { CommittedRun } from "./batch-lane.ts";

export interface BatchWriterOptions {
  /** Entries in one statement at most; default 256. */
  readonly maxEntries?: number;
  /** How long an entry may wait for others while a statement is under way, milliseconds; default 5. */
  readonly maxWaitMs?: number;
  /** Statements under way at once; default 2. */
  readonly inFlight?: number;
  /** How long a batch is tried again while the database is away, milliseconds; default 10,000. */
  readonly retryForMs?: number;
  readonly onCommitted?: (runs: readonly CommittedRun[]) => void;
}

interface Waiting {
  readonly prepared: PreparedEntry;
  readonly resolve: (value: { seq: number }) => void;
  readonly reject: (error: Error) => void;
}

const maxCollisions = 5;

export class BatchWriter {
  readonly #pool: pg.Pool;
  readonly #maxEntries: number;
  readonly #maxWaitMs: number;
  readonly #onCommitted: (runs: readonly CommittedRun[]) => void;
  readonly #free: BatchLane[];
  readonly #lanes: number;
  /** Rollouts with an entry under way. */
  readonly #busy = new Set<string>();
  #queue: Waiting[] = [];
  #timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
  #closing: (() => void) | null = null;
  #closed = false;

  constructor(pool: pg.Pool, options: BatchWriterOptions = {}) {
    const writerId = newId();
    this.#pool = pool;
    this.#maxEntries = options.maxEntries ?? 256;
    this.#maxWaitMs = options.maxWaitMs ?? 5;
    this.#onCommitted = options.onCommitted ?? (() => undefined);
    this.#lanes = options.inFlight ?? 2;
    const retryForMs = options.retryForMs ?? 10_000;
    this.#free = Array.from({ length: this.#lanes }, (_, lane) => new BatchLane(pool, writerId, lane, retryForMs));
  }

  /**
   * Resolves once the entry is durable, with the seq of its event. Repeating a turn or its results with the same claim is safe.
   * @throws FencedError when (attempt, claim) is not current; BoundaryError("infrastructure", retryable) when the database
   * is away; RangeError or BoundaryError for an entry that can't be stored
   */
  write(entry: HotEntry): Promise<{ seq: number }> {
    if (this.#closed) {
      return Promise.reject(new BoundaryError("infrastructure", "writer-closed", "the writer is closed"));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ prepared: prepareEntry(entry), resolve, reject });
      this.#schedule();
    });
  }

  /** Writes what is waiting, then stops. */
  close(): Promise<void> {
    this.#closed = true;
    return new Promise((resolve) => {
      this.#closing = resolve;
      this.#settleClose();
      this.#schedule();
    });
  }

  #settleClose(): void {
    if (this.#queue.length > 0 || this.#free.length < this.#lanes || !this.#closing) return;
    this.#closing();
    this.#closing = null;
  }

  /** An idle writer sends at the end of the tick; a busy one gathers until a batch is full or the wait is over. */
  #schedule(): void {
    if (this.#free.length === 0 || this.#queue.length === 0) return;
    if (this.#queue.length >= this.#maxEntries) {
      this.#dispatch();
      return;
    }
    if (this.#timer) return;
    const idle = this.#free.length === this.#lanes;
    this.#timer = idle ? setImmediate(() => this.#dispatch()) : setTimeout(() => this.#dispatch(), this.#maxWaitMs);
  }

  #dispatch(): void {
    if (this.#timer) {
      clearTimeout(this.#timer as NodeJS.Timeout);
      clearImmediate(this.#timer as NodeJS.Immediate);
      this.#timer = null;
    }
    const batch = this.#takeBatch();
    const lane = batch.length > 0 ? this.#free.pop() : undefined;
    if (!lane) return;
    void this.#commit(lane, batch).finally(() => {
      for (const { prepared } of batch) this.#busy.delete(prepared.entry.rolloutId);
      this.#free.push(lane);
      this.#schedule();
      this.#settleClose();
    });
    this.#schedule();
  }

  #takeBatch(): Waiting[] {
    if (this.#free.length === 0) return [];
    const batch: Waiting[] = [];
    const left: Waiting[] = [];
    for (const waiting of this.#queue) {
      const { rolloutId } = waiting.prepared.entry;
      if (batch.length >= this.#maxEntries || this.#busy.has(rolloutId)) {
        left.push(waiting);
      } else {
        this.#busy.add(rolloutId);
        batch.push(waiting);
      }
    }
    this.#queue = left;
    return batch;
  }

  /** Never rejects: every entry gets its answer. A refused batch is halved until the bad entry stands alone. */
  async #commit(lane: BatchLane, batch: readonly Waiting[], collisions = 0): Promise<void> {
    let result: BatchResult;
    try {
      result = await lane.send(batch.map((waiting) => waiting.prepared));
    } catch (cause) {
      if (isCollision(cause) && collisions < maxCollisions) return this.#commit(lane, batch, collisions + 1);
      if (batch.length > 1 && !isDatabaseAway(cause) && !(cause instanceof BoundaryError)) {
        const half = batch.length >> 1;
        await this.#commit(lane, batch.slice(0, half));
        return this.#commit(lane, batch.slice(half));
      }
      const error = asBoundaryError(cause, "the entry was not written");
      for (const waiting of batch) waiting.reject(error);
      return;
    }
    this.#onCommitted(result.runs);
    await Promise.all(batch.map((waiting, ord) => this.#answer(waiting, result.seqs[ord] ?? -1)));
  }

  async #answer({ prepared, resolve, reject }: Waiting, seq: number): Promise<void> {
    const { entry } = prepared;
    if (seq > 0) resolve({ seq });
    else if (seq < 0) reject(new FencedError(`rollout ${entry.rolloutId} attempt ${entry.attempt}`));
    else await this.#seqOfRepeat(prepared).then((found) => resolve({ seq: found }), reject);
  }

  /** Seq of the event that the first try of this entry wrote. */
  async #seqOfRepeat({ entry, eventType }: PreparedEntry): Promise<number> {
    const turn = entry.kind === "turn" ? entry.turn.turn : entry.kind === "tools" ? entry.turn : null;
    const { rows } = await this.#pool.query<{ seq: number }>(
      `select seq from events where run_id = $1 and rollout_id = $2 and type = $3
         and (body ->> 'attempt')::int = $4 and (body ->> 'turn')::int = $5 order by seq limit 1`,
      [entry.runId, entry.rolloutId, eventType, entry.attempt, turn],
    );
    return rows[0]?.seq ?? 0;
  }
}
