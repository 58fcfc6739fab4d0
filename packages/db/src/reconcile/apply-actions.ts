import type { JobName, JobPayload } from "@rolldeck/contracts/jobs";
import type { Action, RunSnapshot } from "@rolldeck/contracts/plan";
import type { Split } from "@rolldeck/contracts/ports/task";
import type pg from "pg";

export type QueuedJob = { [N in JobName]: { readonly name: N; readonly payload: JobPayload<N> } }[JobName];
export interface InstanceFacts {
  instanceId(task: string, split: Split, index: number): string;
}
export interface Applied {
  /** To be enqueued now that the rows are committed. */
  readonly jobs: readonly QueuedJob[];
  readonly applied: number;
  /** Actions whose compare-and-set found another row than the snapshot's; the run was woken to plan again. */
  readonly refused: number;
}

export function applyActions(
  _pool: pg.Pool,
  _snapshot: RunSnapshot,
  _actions: readonly Action[],
  _facts: InstanceFacts,
): Promise<Applied> {
  return Promise.reject(new Error("under construction"));
}
