import type pg from "pg";

/** Raises the run's wake: something changed that its planner must see. */
export function wakeRun(_pool: pg.Pool, _runId: string): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
/** The planner has handled `wake`; `wakeAt` (ms, database clock) is its next timer. @returns the run's present wake */
export function markHandled(
  _pool: pg.Pool,
  _runId: string,
  _wake: number,
  _wakeAt: number | null,
): Promise<{ wake: number }> {
  return Promise.reject(new Error("under construction"));
}
/** Runs that need a plan: behind for over 1 s, a timer due, or a lease past. */
export function runsBehind(_pool: pg.Pool): Promise<string[]> {
  return Promise.reject(new Error("under construction"));
}
