/**
 * The one way to open a pool. Invariants of every connection: schema `public`, UTC, a name that says which process it
 * belongs to, and int8 read as a number while that is exact and as decimal text past 2^53.
 */
import pg from "pg";

/** A process's connections to the database. */
export type Pool = pg.Pool;

export interface PoolOptions {
  /** Connections at most; default 10. */
  readonly max?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
  readonly connectTimeoutMs?: number;
  /** A statement that runs longer is cancelled; 0 = never. */
  readonly statementTimeoutMs?: number;
  /** Called when an idle connection breaks; the pool replaces it. */
  readonly onIdleError?: (error: Error) => void;
}

const int8 = 20;

/** int8 as it is: a number when exact, else its decimal text. */
export function parseInt8(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === int8 && format !== "binary" ? parseInt8 : pg.types.getTypeParser(oid, format as "text"),
};

export function createPool(url: string, options: PoolOptions = {}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max ?? 10,
    application_name: options.applicationName ?? "rolldeck",
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    statement_timeout: options.statementTimeoutMs ?? 0,
    keepAlive: true,
    options: "-c search_path=public -c timezone=UTC",
    types,
  });
  // A broken connection is replaced by the pool; without a listener Node would end the process. The same holds for one that
  // is taken but between two queries: the next query tells its user.
  pool.on("error", options.onIdleError ?? (() => undefined));
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}
