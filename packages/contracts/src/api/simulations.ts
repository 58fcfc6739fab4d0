/**
 * Simulations of a run under other policies and pool sizes: `/api/v1/simulations`. One is asked for, looked at while it goes, and
 * may be stopped; its server forgets it after a while.
 */
import { z } from "zod";
import { Bounds } from "../run-config.ts";
import { RunId } from "./runs.ts";

export const StartSimulation = z.strictObject({
  runId: RunId,
  /** Policies beside the present one; absent: all. */
  dispatchers: z.array(z.string().min(1).max(50)).max(20).optional(),
  /** How often each setting is played; absent: 4, of large steps 2. */
  seeds: z.int().min(1).max(16).optional(),
});
export const SimulationRef = z.strictObject({
  simulationId: z.string().regex(/^[0-9a-z]{8,40}$/, "a simulation id is 8 to 40 lower-case letters and digits"),
});

/** A mean with the ends of its 95 % interval. */
export const Interval = z.object({ mean: z.number(), low: z.number(), high: z.number() });
export const SimulatedSetting = z.object({
  dispatcher: z.string(),
  bounds: Bounds,
  /** Size of the sandbox pool. */
  sandboxes: z.int(),
  /** Milliseconds of a step, with the 95 % interval over the seeds. */
  stepMs: Interval,
  /** Relative to the present setting, −0.18 = 18 % shorter; null for that itself. */
  change: Interval.nullable(),
});
export type SimulatedSetting = z.infer<typeof SimulatedSetting>;

export const SimulationResult = z.object({
  /** Where its durations come from. */
  basis: z.enum(["recorded", "assumed"]),
  /** Rollouts that were recorded. */
  rollouts: z.int(),
  seeds: z.int(),
  /** Whether the run's tasks take sandboxes. */
  sandboxed: z.boolean(),
  /** Median of the run's steps that are over, milliseconds; null = none is. */
  actualStepMs: z.number().nullable(),
  steps: z.int(),
  present: SimulatedSetting,
  /** Fastest first. */
  others: z.array(SimulatedSetting),
  /** What is worth changing. */
  advice: z.array(z.string()),
});
export type SimulationResult = z.infer<typeof SimulationResult>;

export const simulationStates = ["running", "done", "cancelled", "failed"] as const;
export const SimulationInfo = z.object({
  simulationId: z.string(),
  runId: z.string(),
  state: z.enum(simulationStates),
  /** Single simulations played so far. */
  played: z.int(),
  elapsedMs: z.number(),
  /** Why it failed. */
  reason: z.string().nullable(),
  result: SimulationResult.nullable(),
});
export type SimulationInfo = z.infer<typeof SimulationInfo>;
