import type pg from "pg";

/** Who sends training requests: the prepare job of a run, or the update job of a step. */
export type TrainerHolder =
  | { readonly kind: "prepare"; readonly runId: string; readonly claim: number }
  | { readonly kind: "update"; readonly runId: string; readonly stepId: string; readonly claim: number };

/** Next training request number of the run's model, committed before it is sent. @throws FencedError */
export function nextTrainerSeq(_pool: pg.Pool, _holder: TrainerHolder): Promise<number> {
  return Promise.reject(new Error("under construction"));
}
/** A new model (or a backend that forgot) counts from 1 again: sets the last used number. @throws FencedError */
export function resetTrainerSeq(_pool: pg.Pool, _holder: TrainerHolder, _lastSeq: number): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
