import type pg from "pg";
import type { StepRollout } from "../training/read-step-rollouts.ts";
import type { BatchState } from "./batch-requests.ts";

export type FinishedRollout = StepRollout & { readonly instanceId: string };
export interface FinishedPage {
  readonly batchId: string;
  readonly state: BatchState;
  readonly rollouts: readonly FinishedRollout[];
  /** Give it back as `cursor` for what settles later. */
  readonly cursor: number;
  /** Every rollout of the batch was returned by this page or an earlier one. */
  readonly done: boolean;
}
/** Settled rollouts of a batch in the order they settled. @throws NotFoundError */
export function readFinishedRollouts(
  _pool: pg.Pool,
  _batch: { readonly runId: string; readonly batchId: string; readonly cursor: number; readonly limit: number },
): Promise<FinishedPage> {
  return Promise.reject(new Error("under construction"));
}
