/** What applying an action of the planner needs to know of the little world. */
import { strict as assert } from "node:assert";
import type { ResourceCounts } from "@rolldeck/contracts/plan";
import type { RolloutRow, RunRow, StepRow } from "./world-rows.ts";

export interface ApplyContext {
  readonly now: number;
  readonly run: RunRow;
  readonly runs: readonly RunRow[];
  readonly pools: ResourceCounts;
  readonly grants: ResourceCounts;
  /** Jobs that the action enqueues. */
  deliverStage(rollout: RolloutRow): void;
  deliverPrepare(): void;
  deliverUpdate(step: StepRow): void;
}

export function stepNamed(run: RunRow, stepId: string): StepRow {
  const step = run.steps.find((row) => row.stepId === stepId);
  assert.ok(step, `step ${stepId} exists`);
  return step;
}
