/** What a simulation found. Times are milliseconds from the run's start. */
import type { RolloutOutcome, RunStatus, Stage, StepState } from "@rolldeck/contracts/lifecycle";
import type { NewGroup, Purpose, Resource } from "@rolldeck/contracts/plan";
import type { StepFunction } from "./step-function.ts";

export interface Simulation {
  readonly makespanMs: number;
  readonly status: RunStatus;
  readonly reason: string | null;
  readonly steps: readonly SimulatedStep[];
  readonly spans: readonly SimulatedSpan[];
  /** Leases held of each pool. */
  readonly use: Readonly<Record<Resource, StepFunction>>;
  /** Rollouts that a worker has in each stage, and those that sample. */
  readonly active: Readonly<Record<Stage | "sampling", StepFunction>>;
  /** Mean share of each pool that was leased, 0–1. */
  readonly busy: Readonly<Record<Resource, number>>;
  /** Rollouts × milliseconds by what they waited for. */
  readonly waits: Readonly<Record<WaitCause, number>>;
  /** Milliseconds in which the update was all that went on: what the samplers waited for the trainer. */
  readonly trainerOnlyMs: number;
  /** Milliseconds without an update: what the trainer waited for rollouts. */
  readonly trainerIdleMs: number;
  /** Trained groups by their staleness: at [s] how many lay s versions behind. */
  readonly staleness: readonly number[];
  readonly outcomes: Readonly<Record<RolloutOutcome, number>>;
  readonly plans: number;
}

export interface SimulatedStep {
  readonly purpose: Purpose;
  readonly step: number;
  readonly state: StepState;
  readonly createdAt: number;
  /** The update began; null for an evaluation, and where there was none. */
  readonly updateAt: number | null;
  readonly endedAt: number | null;
  /** Rollouts that it trained. */
  readonly trained: number;
}

/** One stage of one attempt. */
export interface SimulatedSpan {
  readonly rolloutId: string;
  readonly instance: NewGroup;
  readonly sample: number;
  readonly attempt: number;
  readonly stage: Stage;
  /** An init that reset an environment. */
  readonly reset?: boolean;
  readonly readyAt: number;
  /** Null: it never began, for its rollout was cancelled while it waited. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/**
 * `sandbox`, `init-slot`, `run-slot`, `grade-slot`: waiting for admission. `gpu`: sampling slower than one request alone would.
 * `back-off`: a failed rollout stays away. `engine`: nothing but the planner's and the queue's own time.
 */
export const waitCauses = ["sandbox", "init-slot", "run-slot", "grade-slot", "gpu", "back-off", "engine"] as const;
export type WaitCause = (typeof waitCauses)[number];
