import type pg from "pg";

export interface Checkpoint {
  readonly version: number;
  readonly name: string;
  readonly path: string;
  readonly bytes: number | null;
}
/** A checkpoint is COMPLETE on the backend's disk: row and event; repeating it changes nothing. */
export function recordCheckpoint(_pool: pg.Pool, _runId: string, _checkpoint: Checkpoint): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
/** The newest complete one up to version `atMost`: an update saves its checkpoint before its version serves. */
export function newestCheckpoint(_pool: pg.Pool, _runId: string, _atMost?: number): Promise<Checkpoint | null> {
  return Promise.reject(new Error("under construction"));
}
