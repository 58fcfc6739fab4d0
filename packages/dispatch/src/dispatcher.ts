/** A dispatcher is the policy that admits rollouts to their stages. Pure: it sees counts, bounds and candidates, never a clock. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { NewLease, RolloutSnapshot } from "@rolldeck/contracts/plan";
import type { Bounds } from "@rolldeck/contracts/run-config";
import type { WaitReason } from "./wait-reason.ts";

/** The run's unsettled rollouts, those admitted earlier in the same plan included. */
export interface Load {
  /** In the stage's line: no slot yet. */
  readonly waiting: Readonly<Record<Stage, number>>;
  /** A job is on its way or a worker acts. */
  readonly inFlight: Readonly<Record<Stage, number>>;
  /** Rollouts that hold a sandbox for their agent only: another is needed to grade. */
  readonly agentSandboxes: number;
  /** Rollouts that work in an environment: from the admission to init until run, or grading in place, ends. */
  readonly environments: number;
}

/** A rollout that may start its stage now, as far as bounds and pools allow. */
export interface Candidate {
  readonly rollout: RolloutSnapshot;
  /** Run and evaluate as earlier rollouts of the instance took them, milliseconds; null = nothing is known of any. */
  readonly remainingMs: number | null;
  /** As expected it can't be done before the run's hours are over. */
  readonly late: boolean;
  /** Oldest version that its group began with; null = nothing of it has begun. */
  readonly groupVersion: number | null;
}

export interface Dispatcher {
  /** One sentence for the form. */
  readonly description: string;
  /** Why the policy does not let one more rollout into the stage, null where it does; pools are not its business. */
  bar(stage: Stage, load: Load, bounds: Bounds): WaitReason | null;
  /**
   * Leases that admission to the stage takes, all or none. Those the rollout holds already are not taken twice.
   *
   * To keep every mix of policies free of deadlock, a rollout that holds a lease may wait only for resources later in the order
   * sandbox, runSlot, gradeSlot; initSlot is never held while waiting.
   */
  leases(stage: Stage, needsSandbox: boolean): readonly NewLease[];
  /** Who comes first in a stage's line, within a step; equal: who waits longest. Absent: who waits longest. */
  compare?(a: Candidate, b: Candidate): number;
  /** The worker resets a sandbox for the next rollout and does not close it. */
  readonly keepsEnvironments?: boolean;
  /** Groups start while older ones train, up to `maxStaleness` versions ahead. */
  readonly overlapsUpdates?: boolean;
}

/** The sandbox lease where the task needs one, else nothing. */
export const sandboxLease = (needsSandbox: boolean, until: Stage): readonly NewLease[] =>
  needsSandbox ? [{ resource: "sandbox", until }] : [];

/** The stage has all the rollouts its bound allows. */
export const stageIsFull = (stage: Stage, { inFlight }: Load, bounds: Bounds): WaitReason | null =>
  inFlight[stage] < bounds[stage] ? null : bound(`${inFlight[stage]} rollouts are in ${stage}, its bound`);

export const bound = (detail: string): WaitReason => ({ waitsFor: "bound", detail });
