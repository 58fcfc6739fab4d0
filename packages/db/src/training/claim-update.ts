import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";

export interface ClaimedUpdate {
  readonly claim: number;
  readonly runId: string;
  readonly stepId: string;
  /** The update it makes, from 1. */
  readonly step: number;
  readonly config: RunConfig;
  readonly servingVersion: number | null;
  readonly modelId: string | null;
  readonly modelBootId: string | null;
  readonly samplingSessionId: string | null;
  readonly trainerSeq: number;
  readonly failures: number;
  /** Database clock, milliseconds. */
  readonly createdAtMs: number;
  readonly gatheredAtMs: number | null;
  readonly updateStartedAtMs: number;
}
/** Takes the update of a step in state `updating`, or null. */
export function claimUpdate(_pool: pg.Pool, _stepId: string, _workerId: string): Promise<ClaimedUpdate | null> {
  return Promise.reject(new Error("under construction"));
}
/** @returns false when the claim is lost: stop and send nothing more */
export function renewUpdate(_pool: pg.Pool, _stepId: string, _claim: number): Promise<boolean> {
  return Promise.reject(new Error("under construction"));
}
/** Counts the failure, gives the lease back and wakes the run. `counted: false` for a graceful hand-back. */
export function failUpdate(
  _pool: pg.Pool,
  _update: { readonly stepId: string; readonly claim: number; readonly reason: string; readonly counted?: boolean },
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
