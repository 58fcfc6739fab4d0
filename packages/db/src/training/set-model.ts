import type pg from "pg";

export interface ModelSet {
  readonly runId: string;
  /** Claim of the prepare job. */
  readonly claim: number;
  readonly modelId: string;
  readonly bootId: string;
  readonly samplingSessionId: string;
  /** Version that serves now: updates done. */
  readonly version: number;
  /** Checkpoint it was loaded from and steps replayed since; null and 0 for a fresh model. */
  readonly checkpoint: string | null;
  readonly replayed: number;
}
/** The model exists and serves: row, version, events, lease given back, wake: one write. @throws FencedError */
export function setModel(_pool: pg.Pool, _model: ModelSet): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
