import type pg from "pg";

export interface BatchRequest {
  readonly runId: string;
  readonly trainerStep: number;
  readonly instances: readonly { readonly taskSet: number; readonly index: number }[];
  readonly samples: number;
  readonly policyVersion: number;
  readonly deadlineMs: number | null;
}
export type BatchState = "requested" | "gathering" | "done" | "cancelled";
/** Idempotent by (run, trainer step). @throws NotFoundError, ConflictError when the same step asked for something else */
export function requestBatch(_pool: pg.Pool, _request: BatchRequest): Promise<{ batchId: string; state: BatchState }> {
  return Promise.reject(new Error("under construction"));
}
