import type pg from "pg";

export interface TestPostgres {
  url(database: string): string;
  /** Restarts the server at once, as a crash would. */
  restart(): Promise<void>;
}
export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  drop(): Promise<void>;
}
/** One server per process, started on first use, gone with the process. */
export function startTestPostgres(): Promise<TestPostgres> {
  return Promise.reject(new Error("under construction"));
}
/** A fresh, migrated database of that server. */
export function createTestDatabase(): Promise<TestDatabase> {
  return Promise.reject(new Error("under construction"));
}
