import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";

/** Moves a run along an edge of its lifecycle, with its event and wake. @throws NotFoundError, ConflictError */
export function moveRun(_pool: pg.Pool, _runId: string, _to: RunStatus, _reason: string | null): Promise<RunStatus> {
  return Promise.reject(new Error("under construction"));
}
