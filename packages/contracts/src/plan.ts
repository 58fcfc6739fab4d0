/**
 * What the planner reads and what it says. `db` builds the snapshot and applies the actions by compare-and-set; `dispatch`
 * decides, purely. Times are milliseconds of the database's clock.
 */
import type { Ending } from "./endings.ts";
import type { RolloutOutcome, RolloutState, RunStatus, Stage, StepState } from "./lifecycle.ts";
import type { Split } from "./ports/task.ts";
import type { RunConfig } from "./run-config.ts";

export const resources = ["sandbox", "initSlot", "runSlot", "gradeSlot", "gpu"] as const;
export type Resource = (typeof resources)[number];
export type ResourceCounts = Readonly<Record<Resource, number>>;

export type Purpose = "train" | "evaluate";

export interface RunSnapshot {
  readonly now: number;
  readonly runId: string;
  readonly status: RunStatus;
  readonly config: RunConfig;
  /** Number of updates done = version that serves, null before the first version serves. */
  readonly servingVersion: number | null;
  /** Boot id of the backend that holds the model, null when none was created. */
  readonly modelBootId: string | null;
  /** Newest boot id seen at the backend, null while it is down. */
  readonly backendBootId: string | null;
  /** A worker holds the lease of the run's prepare job, until then. */
  readonly prepareLeaseUntil: number | null;
  readonly prepareFailures: number;
  readonly startedAt: number | null;
  readonly sampledTokens: number;
  /** Instances of each task set by split; null = endless. In the order of config.taskSets. */
  readonly taskSizes: readonly { readonly train: number | null; readonly evaluate: number | null }[];
  /** Sandbox need per task set, in the order of config.taskSets. */
  readonly taskSandboxes: readonly ("none" | "process" | "image")[];
  readonly steps: readonly StepSnapshot[];
  /** All rollouts of the steps that are not over. */
  readonly rollouts: readonly RolloutSnapshot[];
  /** Batch requests of a driven run that have no step yet, oldest first. */
  readonly batchRequests: readonly BatchRequestSnapshot[];
  /** Driven runs: when the outside trainer's lease ends. */
  readonly trainerLeaseUntil: number | null;
  /** Leases this run holds now, by resource. */
  readonly held: ResourceCounts;
}

export interface StepSnapshot {
  readonly stepId: string;
  readonly purpose: Purpose;
  /** Train: the update it makes, from 1. Evaluate: the version it measures, from 0. */
  readonly step: number;
  readonly state: StepState;
  readonly source: "planned" | "driven";
  readonly createdAt: number;
  readonly updateLeaseUntil: number | null;
  readonly updateFailures: number;
}

export interface RolloutSnapshot {
  readonly rolloutId: string;
  readonly stepId: string;
  readonly groupId: string;
  readonly taskSet: number;
  readonly sample: number;
  readonly attempt: number;
  readonly stage: Stage;
  readonly state: RolloutState;
  readonly claim: number;
  /** Deliveries of this attempt's stage so far. */
  readonly deliveries: number;
  readonly leaseUntil: number | null;
  /** Not to be admitted before (back-off). */
  readonly notBefore: number | null;
  /** When it entered its present stage's waiting line. */
  readonly readyAt: number;
  readonly stageStartedAt: number | null;
  readonly ending: Ending | null;
  readonly outcome: RolloutOutcome | null;
  readonly reward: number | null;
  readonly infrastructureFailures: number;
  readonly evaluateFailures: number;
  readonly holds: readonly Resource[];
}

export interface BatchRequestSnapshot {
  readonly batchId: string;
  readonly trainerStep: number;
  readonly groups: readonly NewGroup[];
  readonly groupSize: number;
  readonly deadlineAt: number | null;
}

export interface NewGroup {
  readonly taskSet: number;
  readonly split: Split;
  readonly instanceIndex: number;
}

/** A lease to take; it is released when the rollout leaves stage `until` (or settles, or starts a new attempt). */
export interface NewLease {
  readonly resource: Resource;
  readonly until: Stage;
}

export type Action =
  | { readonly do: "move-run"; readonly from: RunStatus; readonly to: RunStatus; readonly reason: string | null }
  /** Enqueue `prepare` (create or re-adopt the model); its lease makes doubles harmless. */
  | { readonly do: "prepare" }
  | {
      readonly do: "create-step";
      readonly purpose: Purpose;
      readonly step: number;
      readonly source: "planned" | "driven";
      readonly batchId: string | null;
      readonly groups: readonly NewGroup[];
      readonly groupSize: number;
    }
  /** waiting → queued with these leases, then a job. */
  | {
      readonly do: "admit";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly stage: Stage;
      readonly leases: readonly NewLease[];
    }
  /** Same attempt and stage, lease past: a new job; the worker continues from the last committed turn. */
  | { readonly do: "redeliver"; readonly rolloutId: string; readonly attempt: number; readonly stage: Stage }
  /** A new attempt from init; the old one stays readable. Releases its leases. */
  | {
      readonly do: "retry";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly notBefore: number;
      readonly reason: string;
    }
  /** Back to waiting for evaluate only. */
  | {
      readonly do: "regrade";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly notBefore: number;
      readonly reason: string;
    }
  | {
      readonly do: "settle";
      readonly rolloutId: string;
      readonly attempt: number;
      readonly outcome: RolloutOutcome;
      readonly ending: Ending;
      readonly reason: string;
    }
  | { readonly do: "begin-update"; readonly stepId: string }
  /** Update job again: its lease is past. */
  | { readonly do: "redeliver-update"; readonly stepId: string }
  | {
      readonly do: "end-step";
      readonly stepId: string;
      readonly from: StepState;
      readonly to: StepState;
      readonly reason: string | null;
    }
  | { readonly do: "note"; readonly level: "info" | "warning" | "error"; readonly message: string };

/** Plan again no later than this (back-off ends, deadline), milliseconds of the database's clock; null = no timer. */
export interface Plan {
  readonly actions: readonly Action[];
  readonly wakeAt: number | null;
}

/** One run's wish at a pool: what it holds and what it could use now. */
export interface Demand {
  readonly runId: string;
  readonly weight: number;
  readonly held: number;
  readonly wanted: number;
}
