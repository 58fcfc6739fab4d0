/** A dispatcher is the policy that admits rollouts to their stages. Pure: it sees counts and bounds, never a clock. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { NewLease } from "@rolldeck/contracts/plan";
import type { Bounds } from "@rolldeck/contracts/run-config";

/** The run's unsettled rollouts, those admitted earlier in the same plan included. */
export interface Load {
  /** In the stage's line: no slot yet. */
  readonly waiting: Readonly<Record<Stage, number>>;
  /** A job is on its way or a worker acts. */
  readonly inFlight: Readonly<Record<Stage, number>>;
  /** Rollouts before grading that hold a sandbox for their agent. */
  readonly agentSandboxes: number;
}

export interface Dispatcher {
  /** One sentence for the form. */
  readonly description: string;
  /** Whether the policy lets one more rollout into the stage; pools are not its business. */
  mayAdmit(stage: Stage, needsSandbox: boolean, load: Load, bounds: Bounds): boolean;
  /**
   * Leases that admission to the stage takes, all or none. Those the rollout holds already are not taken twice.
   *
   * To keep every mix of policies free of deadlock, a rollout that holds a lease may wait only for resources later in the order
   * sandbox, runSlot, gradeSlot; initSlot is never held while waiting.
   */
  leases(stage: Stage, needsSandbox: boolean): readonly NewLease[];
}

/** The sandbox lease where the task needs one, else nothing. */
export const sandboxLease = (needsSandbox: boolean, until: Stage): readonly NewLease[] =>
  needsSandbox ? [{ resource: "sandbox", until }] : [];
