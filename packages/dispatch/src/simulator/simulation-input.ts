/** What a simulation is told: the run, its pools, how long everything takes, and what the machinery between costs. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { NewGroup, ResourceCounts, RunSnapshot } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { RolloutKey, WorkOf } from "./rollout-work.ts";

export interface SimulationInput extends Pick<RunSnapshot, "taskSizes" | "taskSandboxes" | "gradedInPlace"> {
  /** Simulated to its end: all of `budget.steps`, its evaluations included. */
  readonly config: RunConfig;
  /** Sizes of the pools; the run has them to itself. */
  readonly pools: ResourceCounts;
  readonly work: WorkOf;
  /** It begins with the environments that its earlier steps left open, where its policy keeps any. Default false. */
  readonly environmentsOpen?: boolean;
  /** Absent: the machinery costs nothing. */
  readonly overheads?: Overheads;
  /** Absent: updates take no time. */
  readonly trainer?: Trainer;
  /** Absent: `runMs` is all of the run stage. */
  readonly gpu?: Gpu;
  readonly failures?: Failures;
  /** Absent: 1 for half of the rollouts of each instance, 0 for the others, by the seed. */
  readonly reward?: (rollout: RolloutKey) => number;
  /** What the planner knows of an instance's stages from before, milliseconds; absent or null: nothing. */
  readonly expected?: (instance: NewGroup) => Readonly<Record<Stage, number>> | null;
  readonly seed?: number;
}

/** Milliseconds that the live engine adds. All zero: the ideal that its policy could reach. */
export interface Overheads {
  /** From a change of the rows to the plan that reads it, when the reconciler is idle. */
  readonly wakeMs: number;
  /** From the plan's reading of the rows to its actions' commit. */
  readonly planMs: number;
  /** Between two plans of one burst. */
  readonly roundMs: number;
  /** From the commit of an action to the worker that takes its job. */
  readonly deliveryMs: number;
  /** The claim, before the stage's own work. */
  readonly claimMs: number;
  /** The commit at the stage's end, after its own work. */
  readonly stageEndMs: number;
}

export const noOverheads: Overheads = {
  wakeMs: 0,
  planMs: 0,
  roundMs: 0,
  deliveryMs: 0,
  claimMs: 0,
  stageEndMs: 0,
};

/** What an update takes: a fixed time, or by the tokens that the step's rollouts sampled. */
export interface Trainer {
  readonly msPerStep?: number;
  readonly tokensPerSecond?: number;
  /** It has the sampler's GPUs: run stages stand still while it works. Default false. */
  readonly colocated?: boolean;
}

/**
 * The engine that samples. One rollout gets at most `requestTokensPerSecond`; all of them together at most
 * T(c) = peak·c / (c + halfAt) of each replica, c being the rollouts that sample on it.
 */
export interface Gpu {
  readonly requestTokensPerSecond: number;
  /** Of one replica with endless concurrency. */
  readonly peakTokensPerSecond: number;
  /** Concurrency at which a replica does half of its peak. */
  readonly halfAt: number;
  /** Default 1. */
  readonly replicas?: number;
  /** Rollouts whose context fills a replica's cache, for adaptive concurrency; absent: its load is not read. */
  readonly cacheRollouts?: number;
}

/** Probability that one try of the stage fails, at a uniform moment of it. */
export type Failures = Readonly<Record<Stage, number>>;
