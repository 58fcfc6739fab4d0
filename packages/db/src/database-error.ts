/** What a failed query means: the database is away (try again), or the statement is at fault. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import pg from "pg";

/** The connection broke, could not be made, or the server is starting, stopping or full: the same query may work later. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Errors the server sent have an SQLSTATE; all others come from the socket or the pool.
  if (!(error instanceof pg.DatabaseError)) return !(error instanceof TypeError) && !(error instanceof RangeError);
  return /^(08|53|57P)/.test(error.code ?? "");
}

/** Two statements met in opposite order (or a retry is asked for): the same statement may be sent again at once. */
export const isCollision = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && (error.code === "40P01" || error.code === "40001");

export function asBoundaryError(cause: unknown, what: string): BoundaryError {
  if (cause instanceof BoundaryError) return cause;
  const away = isDatabaseAway(cause);
  return new BoundaryError(
    "infrastructure",
    away ? "database-away" : "database-refused",
    `${what}: ${cause instanceof Error ? cause.message : String(cause)}`,
    { cause, retryable: away },
  );
}
