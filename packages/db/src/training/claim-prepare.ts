import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";

export interface ClaimedPrepare {
  readonly claim: number;
  readonly runId: string;
  readonly status: RunStatus;
  readonly config: RunConfig;
  /** Updates done. */
  readonly step: number;
  readonly servingVersion: number | null;
  /** The model the row knows, and the backend boot that held it. */
  readonly modelId: string | null;
  readonly modelBootId: string | null;
  readonly samplingSessionId: string | null;
  readonly trainerSeq: number;
  readonly failures: number;
}
/** Takes the run's prepare job, or null: another holds it. */
export function claimPrepare(_pool: pg.Pool, _runId: string, _workerId: string): Promise<ClaimedPrepare | null> {
  return Promise.reject(new Error("under construction"));
}
/** @returns false when the claim is lost: stop and send nothing more */
export function renewPrepare(_pool: pg.Pool, _runId: string, _claim: number): Promise<boolean> {
  return Promise.reject(new Error("under construction"));
}
/** Counts the failure, gives the lease back and wakes the run. `counted: false` for a graceful hand-back. */
export function failPrepare(
  _pool: pg.Pool,
  _prepare: { readonly runId: string; readonly claim: number; readonly reason: string; readonly counted?: boolean },
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
