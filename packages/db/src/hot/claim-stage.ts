import type { Ending } from "@rolldeck/contracts/endings";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { Purpose } from "@rolldeck/contracts/plan";
import type { Split } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";

export interface StageClaimRequest {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly stage: Stage;
  readonly workerId: string;
}
export interface ClaimedStage {
  readonly claim: number;
  readonly runId: string;
  readonly config: RunConfig;
  readonly stepId: string;
  readonly step: number;
  readonly purpose: Purpose;
  readonly groupId: string;
  readonly taskSet: number;
  readonly task: string;
  readonly split: Split;
  readonly instanceIndex: number;
  readonly instanceId: string;
  readonly sample: number;
  readonly seed: number;
  readonly attempt: number;
  readonly stage: Stage;
  /** Database clock, milliseconds. The stage's deadline counts from here. */
  readonly stageStartedAtMs: number;
  /** Times this stage of this attempt was claimed, this one included. */
  readonly deliveries: number;
  readonly ending: Ending | null;
  readonly finalAnswer: string | null;
  readonly turns: number;
  /** What samples; null before the first version serves. */
  readonly serving: {
    readonly version: number;
    readonly modelId: string;
    readonly samplingSessionId: string;
    readonly bootId: string;
  } | null;
}

/** Takes the stage for this worker, or null: a late or double delivery, to be dropped. */
export function claimStage(_pool: pg.Pool, _request: StageClaimRequest): Promise<ClaimedStage | null> {
  return Promise.reject(new Error("under construction"));
}
