/**
 * Rows of a read, parsed once: the SQL names its columns as the contract names its fields. Times come out as RFC 3339 UTC
 * text with milliseconds, so no time zone of any process can touch them.
 */
import type pg from "pg";
import { z } from "zod";

/** A pool, or a client inside a transaction. */
export type Queryable = Pick<pg.Pool, "query">;

export async function readRows<T extends z.ZodType>(
  db: Queryable,
  row: T,
  sql: string,
  values: readonly unknown[] = [],
): Promise<z.output<T>[]> {
  const result = await db.query(sql, [...values]);
  return z.array(row).parse(result.rows);
}

export async function readRow<T extends z.ZodType>(
  db: Queryable,
  row: T,
  sql: string,
  values: readonly unknown[] = [],
): Promise<z.output<T> | null> {
  const rows = await readRows(db, row, sql, values);
  return rows[0] ?? null;
}

/** SQL for a timestamptz expression as RFC 3339 UTC text. */
export const iso = (expression: string): string =>
  `to_char(${expression} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** SQL for a finite float8, or null: JSON has no NaN and no infinity. */
export const finite = (expression: string): string =>
  `case when ${expression} not in ('NaN', 'Infinity', '-Infinity') then ${expression} end`;

/** An error of Postgres with this SQLSTATE. */
export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
