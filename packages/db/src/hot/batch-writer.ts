import type pg from "pg";
import type { HotEntry } from "./entries.ts";

export interface CommittedRun {
  readonly runId: string;
  /** Newest seq of the run after this batch. */
  readonly seq: number;
}
export interface BatchWriterOptions {
  /** Entries in one statement at most; default 256. */
  readonly maxEntries?: number;
  /** How long the first entry of a batch may wait for others, milliseconds; default 5. */
  readonly maxWaitMs?: number;
  /** Statements under way at once; default 2. */
  readonly inFlight?: number;
  /** How long a batch is tried again while the database is away, milliseconds; default 10,000. */
  readonly retryForMs?: number;
  readonly onCommitted?: (runs: readonly CommittedRun[]) => void;
}

export class BatchWriter {
  constructor(
    readonly pool: pg.Pool,
    readonly options: BatchWriterOptions = {},
  ) {}
  /** Resolves once the entry is durable, with the seq of its event. @throws FencedError, BoundaryError("infrastructure") */
  write(_entry: HotEntry): Promise<{ seq: number }> {
    return Promise.reject(new Error("under construction"));
  }
  /** Writes what is waiting, then stops. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}
