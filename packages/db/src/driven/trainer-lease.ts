import type pg from "pg";

/** The outside trainer lives: renews its lease and tells which version it serves. @throws NotFoundError, ConflictError */
export function renewTrainerLease(
  _pool: pg.Pool,
  _trainer: { readonly runId: string; readonly leaseMs: number; readonly policyVersion?: number },
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
