/**
 * The process's one pg.Pool as BullMQ's Postgres backend sees it. Queues and workers of this package all go through one
 * of these, so that a process never opens more connections than its pool allows.
 *
 * Invariants:
 * - Every connection handed to BullMQ resolves names in `public` first and BullMQ's own schema second: its commands are
 *   unqualified, and our tables must win. The setting stays on the connection and is harmless to everyone else.
 * - A lost or starting server shows itself to BullMQ as a refused connection, the one kind of failure it waits out;
 *   any other kind makes its fetch loop spin and fails jobs that ended well.
 * - One outage is reported once, not once per waiting query.
 * - However many statements BullMQ wants at once (thousands of jobs may end together), they use a part of the pool's connections
 *   and the others wait here: leases and turns never wait behind them. While the server is away nobody waits for anybody.
 */
import { EventEmitter } from "node:events";
import type { PgPool, PgPoolClient, PgQueryResult } from "bullmq";
import type pg from "pg";

export const queueSchema = "bullmq";

/** SQLSTATE classes and codes that mean "the server is gone, going, or not ready", never "the statement was wrong". */
const outageCodes = /^(08...|57P01|57P02|57P03|53300|E[A-Z]+)$/;
const outageTexts = /connection terminated|connection ended|timeout exceeded when trying to connect|not queryable/i;

/** Of the pool's connections, for BullMQ's statements; those that it listens with come on top. */
const part = 0.4;

export class SharedPool extends EventEmitter implements PgPool {
  readonly #pool: pg.Pool;
  readonly #atOnce: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #prepared = new WeakSet<pg.PoolClient>();
  readonly #forwardError = (error: Error): void => this.#report(error);
  #down = false;

  constructor(pool: pg.Pool) {
    super();
    // One listener per queue and worker; their number is bounded by the catalogue of queues.
    this.setMaxListeners(0);
    this.#pool = pool;
    this.#atOnce = Math.max(1, Math.floor(pool.options.max * part));
    this.#pool.on("error", this.#forwardError);
  }

  /** @throws an error with code ECONNREFUSED and the cause while the server is away. */
  async connect(): Promise<PgPoolClient> {
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      if (!this.#prepared.has(client)) {
        await client.query(`set search_path to public, ${queueSchema}`);
        this.#prepared.add(client);
      }
      this.#down = false;
      return guarded(client) as PgPoolClient;
    } catch (cause) {
      client?.release(true);
      throw this.#translate(cause);
    }
  }

  async query<R>(text: string, params?: readonly unknown[]): Promise<PgQueryResult<R>> {
    await this.#turn();
    try {
      return await this.#query<R>(text, params);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  /** Whoever is called goes in the place of the one that has ended. */
  async #turn(): Promise<void> {
    if (this.#running >= this.#atOnce && !this.#down) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running += 1;
  }

  async #query<R>(text: string, params?: readonly unknown[]): Promise<PgQueryResult<R>> {
    const client = await this.connect();
    try {
      return await client.query<R>(text, params);
    } catch (cause) {
      throw this.#translate(cause);
    } finally {
      // pg drops clients that can no longer be queried by itself.
      client.release();
    }
  }

  /** The pool belongs to whoever made it; this only lets go of it. */
  async end(): Promise<void> {
    this.#pool.removeListener("error", this.#forwardError);
    this.removeAllListeners();
  }

  #translate(cause: unknown): unknown {
    if (!isOutage(cause)) return cause;
    const error = Object.assign(new Error(`Postgres is away: ${cause.message}`, { cause }), { code: "ECONNREFUSED" });
    this.#report(error);
    return error;
  }

  #report(error: Error): void {
    if (this.#down) return;
    this.#down = true;
    for (const go of this.#waiting.splice(0)) {
      this.#running += 1;
      go();
    }
    if (this.listenerCount("error") > 0) this.emit("error", error);
  }
}

/**
 * BullMQ takes every listener off a connection before it gives it up. What the server still says to such a connection (that it
 * is going down) would end the process.
 */
function guarded(client: pg.PoolClient): pg.PoolClient {
  const release = client.release;
  client.release = (destroy) => {
    if (destroy) client.on("error", ignoreLastWords);
    release.call(client, destroy);
  };
  return client;
}

const ignoreLastWords = (): void => {};

/** Tells a lost, closing or starting server from a statement that failed. */
export function isOutage(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return outageCodes.test(code) || outageTexts.test(error.message);
}
