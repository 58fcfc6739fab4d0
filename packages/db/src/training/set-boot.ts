import type { BootPhase } from "@rolldeck/contracts/events";
import type pg from "pg";

export interface BootProgress {
  readonly phase: BootPhase;
  readonly message: string;
  readonly done: number | null;
  readonly total: number | null;
  readonly unit: string | null;
  readonly elapsedMs: number;
}
/** Progress of a run's boot, with its event; the caller throttles. */
export function setBoot(_pool: pg.Pool, _runId: string, _boot: BootProgress): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
