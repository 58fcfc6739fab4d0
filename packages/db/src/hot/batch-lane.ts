/**
 * One of the writer's lines to the database: sends a batch, and after a lost connection finds out whether it committed. The
 * statement leaves a mark (writer, lane, batch number) with its result; the mark of a batch that is in answers for it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { isDatabaseAway } from "../database-error.ts";
import { batchParameters, type PreparedEntry, partsOf } from "./batch-rows.ts";
import { batchStatement } from "./batch-statement.ts";

export interface CommittedRun {
  readonly runId: string;
  /** Newest seq of the run after this batch. */
  readonly seq: number;
}
export interface BatchResult {
  /** Per entry: its seq, 0 where an earlier try had written it, −1 where it was fenced. */
  readonly seqs: readonly number[];
  readonly runs: readonly CommittedRun[];
}

const Seqs = z.array(z.coerce.number());
const BatchRow = z.object({
  seqs: Seqs,
  runs: z.array(z.object({ runId: z.string(), seq: z.int() })).nullable(),
});

/** A server process as one connection sees it; the start time tells it from a later one with the same pid. */
interface Backend {
  readonly pid: number;
  readonly startedAt: string;
}

const retryPauseMs = 200;

export class BatchLane {
  readonly #backends = new WeakMap<pg.PoolClient, Backend>();
  #batch = 0;

  constructor(
    readonly pool: pg.Pool,
    readonly writerId: string,
    readonly lane: number,
    readonly retryForMs: number,
  ) {}

  /** @throws the statement's own error, or BoundaryError("infrastructure", retryable) when the database stays away */
  async send(batch: readonly PreparedEntry[]): Promise<BatchResult> {
    this.#batch += 1;
    const parts = partsOf(batch);
    const query = {
      ...batchStatement(parts),
      values: [this.writerId, this.lane, this.#batch, ...batchParameters(batch, parts)],
    };
    const end = Date.now() + this.retryForMs;
    for (;;) {
      const tried: { backend: Backend | null } = { backend: null };
      try {
        return await this.#try(query, tried);
      } catch (cause) {
        if (!isDatabaseAway(cause) || this.pool.ended) throw cause;
        const committed = await this.#committed(tried.backend, end, cause);
        if (committed) return committed;
      }
    }
  }

  async #try(query: pg.QueryConfig, tried: { backend: Backend | null }): Promise<BatchResult> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    try {
      const backend = this.#backends.get(client) ?? (await this.#identify(client));
      tried.backend = backend;
      const { rows } = await client.query(query);
      const row = BatchRow.parse(rows[0]);
      return { seqs: row.seqs, runs: row.runs ?? [] };
    } catch (error) {
      if (isDatabaseAway(error) && error instanceof Error) broken = error;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async #identify(client: pg.PoolClient): Promise<Backend> {
    const { rows } = await client.query<Backend>(
      `select pid, backend_start::text as "startedAt" from pg_stat_activity where pid = pg_backend_pid()`,
    );
    const [backend] = rows;
    if (!backend)
      throw new BoundaryError("infrastructure", "no-backend", "the connection does not know its own process");
    this.#backends.set(client, backend);
    return backend;
  }

  /**
   * Result of the batch when it is in; null when it surely is not and may be sent again. The server process that had the
   * statement is ended first, or it could still commit after we looked.
   */
  async #committed(backend: Backend | null, end: number, cause: unknown): Promise<BatchResult | null> {
    for (let latest = cause; ; ) {
      if (Date.now() > end) {
        throw new BoundaryError("infrastructure", "database-away", "the database did not come back in time", {
          cause: latest,
          retryable: true,
        });
      }
      await sleep(retryPauseMs);
      try {
        if (backend && !(await this.#isOver(backend))) continue;
        return await this.#readMark();
      } catch (error) {
        if (!isDatabaseAway(error) || this.pool.ended) throw error;
        latest = error;
      }
    }
  }

  async #isOver(backend: Backend): Promise<boolean> {
    const { rows } = await this.pool.query<{ ended: boolean }>(
      "select pg_terminate_backend(pid, 5000) as ended from pg_stat_activity where pid = $1 and backend_start = $2::timestamptz",
      [backend.pid, backend.startedAt],
    );
    return rows[0]?.ended ?? true;
  }

  async #readMark(): Promise<BatchResult | null> {
    const { rows } = await this.pool.query(
      "select seqs from writer_marks where writer_id = $1 and lane = $2 and batch = $3",
      [this.writerId, this.lane, this.#batch],
    );
    if (rows.length === 0) return null;
    return { seqs: Seqs.parse(rows[0].seqs), runs: [] };
  }
}
