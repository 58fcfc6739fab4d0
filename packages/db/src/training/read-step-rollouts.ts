import type { Ending } from "@rolldeck/contracts/endings";
import type { RolloutOutcome } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import type { Trajectory } from "../hot/read-trajectory.ts";

export interface StepRollout {
  readonly rolloutId: string;
  readonly groupId: string;
  /** Position of the group in its step. */
  readonly position: number;
  readonly taskSet: number;
  readonly sample: number;
  readonly attempt: number;
  readonly outcome: RolloutOutcome;
  readonly ending: Ending;
  readonly reward: number | null;
  readonly success: boolean | null;
  readonly turns: number;
  readonly sampledTokens: number;
  /** Database clock, milliseconds. */
  readonly settledAtMs: number;
  readonly trajectory: Trajectory;
}
/** Settled rollouts of a step with the trajectory of their last attempt, by group position and sample. */
export function readStepRollouts(_pool: pg.Pool, _stepId: string): Promise<StepRollout[]> {
  return Promise.reject(new Error("under construction"));
}
