/**
 * What the planner reads and what it says. `db` builds the snapshot and applies the actions by compare-and-set; `dispatch`
 * decides, purely. Times are milliseconds of the database's clock.
 */
import type { Ending } from "./endings.ts";
import type { RolloutOutcome, RolloutState, RunStatus, Stage, StepState } from "./lifecycle.ts";
import type { EngineReading } from "./ports/backend.ts";
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
  /**
   * Version that serves: number of the newest train step that made an update, 0 before the first; null while none serves. A
   * step that ends without an update leaves its number unused.
   */
  readonly servingVersion: number | null;
  /** Boot id of the backend that holds the model, null when none was created. */
  readonly modelBootId: string | null;
  /** Newest boot id seen at the backend, null while it is down. */
  readonly backendBootId: string | null;
  /** Until when the run's prepare job counts as on its way (`prepare` sets it) or is held by a worker. */
  readonly prepareLeaseUntil: number | null;
  readonly prepareFailures: number;
  /** Why preparing the model can't succeed, however often it is tried; absent or null: it may. */
  readonly prepareRefusal?: string | null;
  /** Why the newest try failed. */
  readonly prepareReason?: string | null;
  readonly startedAt: number | null;
  readonly sampledTokens: number;
  /** Known cost of the run when its newest step ended, by the operator's prices; absent or null: nothing is known. */
  readonly cost?: { readonly total: number; readonly step: number } | null;
  /** Instances of each task set by split; null = endless. In the order of config.taskSets. */
  readonly taskSizes: readonly { readonly train: number | null; readonly evaluate: number | null }[];
  /** Sandbox need per task set, in the order of config.taskSets. */
  readonly taskSandboxes: readonly ("none" | "process" | "image")[];
  /** Task sets whose verifier works in the agent's sandbox, which lives until it has; absent = none does. */
  readonly gradedInPlace?: readonly boolean[];
  /** Every open step and at least the eight newest ended ones of each purpose. */
  readonly steps: readonly StepSnapshot[];
  /** All rollouts of the steps that are not over. */
  readonly rollouts: readonly RolloutSnapshot[];
  /** Batch requests of a driven run that have no step yet, oldest first. */
  readonly batchRequests: readonly BatchRequestSnapshot[];
  /** Driven runs: when the outside trainer's lease ends. */
  readonly trainerLeaseUntil: number | null;
  /** Leases this run holds now, by resource. */
  readonly held: ResourceCounts;
  /** Groups of the steps that are not over; absent = none is set aside and nothing was learned of them. */
  readonly groups?: readonly GroupSnapshot[];
  /** Train groups drawn since the run began, those set aside and those that replaced them included. Default 0. */
  readonly groupsDrawn?: number;
  /** When rollouts of this run entered the init stage, in the last minute. */
  readonly recentStarts?: readonly number[];
  /** Newest reading of the engine that samples, null while there is none. */
  readonly engine?: EngineLoad | null;
  /** How many rollouts may run at once, as adaptive concurrency set it; null = bounds.run. */
  readonly runLimit?: RunLimit | null;
  /** What is started comes to its end; nothing new is started, and the run pauses when all of it has. */
  readonly draining?: boolean;
}

/** Why a group does not count towards its step's update. */
export const setAsideReasons = ["stale", "zero-variance", "not-needed", "cancelled"] as const;
export type SetAsideReason = (typeof setAsideReasons)[number];

export interface GroupSnapshot {
  readonly groupId: string;
  readonly stepId: string;
  readonly instance: NewGroup;
  readonly setAside: SetAsideReason | null;
  /** The group that was set aside for this one. */
  readonly replaces: string | null;
  /** Stage durations of earlier rollouts of the same instance (their geometric mean), milliseconds; null = never seen. */
  readonly expectedMs: Readonly<Record<Stage, number>> | null;
  /** A person holds it: nothing of it is admitted. */
  readonly held: boolean;
}

/**
 * What an engine bears. `waiting` is the fewer of its last two readings: a request that came in a moment ago waits in every engine,
 * and is no queue.
 */
export interface EngineLoad extends EngineReading {
  /** When it was read. */
  readonly at: number;
}

export interface RunLimit {
  readonly limit: number;
  readonly since: number;
  /** For people; absent or null: it was not kept. */
  readonly reason?: string | null;
}

export interface StepSnapshot {
  readonly stepId: string;
  readonly purpose: Purpose;
  /** Train: the update it makes, from 1. Evaluate: the version it measures, from 0. */
  readonly step: number;
  readonly state: StepState;
  readonly source: "planned" | "driven";
  readonly createdAt: number;
  /** As `prepareLeaseUntil`, of the update job; set by `begin-update` and `redeliver-update`. */
  readonly updateLeaseUntil: number | null;
  readonly updateFailures: number;
  /** Why it failed last. */
  readonly updateReason?: string | null;
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
  /** Times this attempt's stage was claimed. */
  readonly deliveries: number;
  /** Active: the worker's lease. Queued: until when its job counts as on its way (`admit` and `redeliver` set it). */
  readonly leaseUntil: number | null;
  /** Not to be admitted before (back-off). */
  readonly notBefore: number | null;
  /** When it entered its present stage's waiting line. */
  readonly readyAt: number;
  readonly stageStartedAt: number | null;
  /** Waiting with a failed ending: the stage failed and the planner decides; `retry` and `regrade` clear it. */
  readonly ending: Ending | null;
  /** What the stage said when it failed. */
  readonly reason?: string | null;
  readonly outcome: RolloutOutcome | null;
  readonly reward: number | null;
  readonly infrastructureFailures: number;
  /** The attempt that tries count from: a reopened evaluation begins anew. Default 1. */
  readonly firstAttempt?: number;
  readonly evaluateFailures: number;
  readonly holds: readonly Resource[];
  /** Policy version of the present attempt's first turn; until that is written, the one that served when its run stage was first claimed; null = not yet. */
  readonly firstVersion?: number | null;
  readonly settledAt?: number | null;
  /** A person holds it: it is not admitted to its next stage. */
  readonly held?: boolean;
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
  /** `leave`: these groups are not part of it; in the same write they move to train step `step`, made where it is not there. */
  | {
      readonly do: "begin-update";
      readonly stepId: string;
      readonly leave?: { readonly step: number; readonly groupIds: readonly string[] };
    }
  /** More groups for a step that is gathering. `drawn`: groupsDrawn as the planner saw it; else nothing is added. */
  | {
      readonly do: "add-groups";
      readonly stepId: string;
      readonly drawn: number;
      readonly groups: readonly (NewGroup & { readonly replaces: string | null })[];
      readonly groupSize: number;
    }
  /** The group no longer counts to its step; what is unsettled of it is cancelled in the same write. */
  | {
      readonly do: "set-aside";
      readonly groupId: string;
      readonly stepId: string;
      readonly as: SetAsideReason;
      readonly reason: string;
    }
  | {
      readonly do: "set-run-limit";
      readonly from: number | null;
      readonly to: number | null;
      readonly reason: string;
    }
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

/**
 * `wakeAt`: plan again no later than this (back-off ends, lease past, deadline), milliseconds of the database's clock; not after
 * the snapshot's `now` = at once, because the actions call for a next plan; null = no timer.
 */
export interface Plan {
  readonly actions: readonly Action[];
  readonly wakeAt: number | null;
}

/** One run's wish at a pool: what it holds and what it could use now. */
export interface Demand {
  readonly runId: string;
  readonly weight: number;
  /** Higher is served first. Default 0. */
  readonly priority?: number;
  /** Whose quota it counts against; absent = nobody's. */
  readonly project?: string;
  /** Of `wanted`, leases for evaluation rollouts, which may use the pool's reserve. Default 0. */
  readonly evaluating?: number;
  readonly held: number;
  /** Leases it could use in all now, those held included. */
  readonly wanted: number;
  /** When the oldest rollout that waits for this resource came to wait: ties go to it, so that no run starves. */
  readonly waitingSince?: number | null;
}
