/** What one rollout will take: the durations that a simulation, or a bench of the live engine, plays. */
import type { NewGroup } from "@rolldeck/contracts/plan";

export interface RolloutKey {
  readonly instance: NewGroup;
  /** How often this instance was drawn before, from 0. A group keeps it when it moves to a later step. */
  readonly visit: number;
  readonly sample: number;
  readonly attempt: number;
}

/** Milliseconds of each stage's own work, without any waiting. */
export interface RolloutWork {
  readonly initMs: number;
  /** Init in an environment of the run that is reset; absent: as long as opening one. */
  readonly resetMs?: number;
  /** With `sampling`: only what the run stage does without the model (its tools). */
  readonly runMs: number;
  readonly evaluateMs: number;
  /** Tokens to sample in so many equal turns; counts only where the simulation has a GPU. */
  readonly sampling?: { readonly tokens: number; readonly turns: number };
}

export type WorkOf = (rollout: RolloutKey) => RolloutWork;
