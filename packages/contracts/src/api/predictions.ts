/**
 * What a run's steps were predicted to take, made once per run from what was known before, held against what they took. A part of
 * `/api/v1/runs/{id}/schedule`. Times are milliseconds; an error of −0.1 says that the prediction is 10 % below what was.
 */
import { z } from "zod";
import { Bounds } from "../run-config.ts";
import { Interval } from "./simulations.ts";

/** Shares, 0–1, of the rollouts' time from being ready for a stage to its end that they waited for the stage to begin. */
export const WaitShares = z.object({ init: z.number(), run: z.number(), evaluate: z.number() });
export type WaitShares = z.infer<typeof WaitShares>;

/** What the planner in virtual time says of a run. */
export const PredictedRun = z.object({
  dispatcher: z.string(),
  bounds: Bounds,
  /** Size of the sandbox pool, all of it taken for this run's. */
  sandboxes: z.int(),
  seeds: z.int(),
  /** Of one step; of an evaluation run, all of it. */
  stepMs: Interval,
  /** Of the first step: longer than the others where steps overlap, for nothing is under way yet. */
  firstStepMs: z.number(),
  /** Steps that the run is to take, and what all of them take; held-out evaluations between them are not counted. */
  steps: z.int(),
  makespanMs: z.number(),
  waits: WaitShares,
});
export type PredictedRun = z.infer<typeof PredictedRun>;

/**
 * Where the durations come from. `earlier-runs`: rollouts of the same task sets, model and backend that settled before the run began.
 * `first-steps`: the run's own, up to `step`; what is said of those steps is no forecast.
 */
export const PredictionBasis = z.discriminatedUnion("from", [
  z.object({ from: z.literal("earlier-runs"), rollouts: z.int(), runIds: z.array(z.string()) }),
  z.object({ from: z.literal("first-steps"), rollouts: z.int(), step: z.int() }),
]);
export type PredictionBasis = z.infer<typeof PredictionBasis>;

export const StoredPrediction = PredictedRun.extend({ basis: PredictionBasis });
export type StoredPrediction = z.infer<typeof StoredPrediction>;

export const PredictionReport = StoredPrediction.extend({
  madeAt: z.string(),
  /** Policy, bounds or sandbox pool are not what they were when it was made. */
  changed: z.boolean(),
  /** The newest steps that are over, oldest first; entry i of each column is one step. A step ends its time when the next begins. */
  taken: z.object({
    step: z.array(z.int()),
    predictedMs: z.array(z.number()),
    actualMs: z.array(z.number()),
    error: z.array(z.number()),
    /** It is a forecast: the step is none of those that the prediction was made from. */
    forecast: z.array(z.boolean()),
  }),
  /** Over the forecast steps that are over; null = none is. */
  all: z.object({ steps: z.int(), predictedMs: z.number(), actualMs: z.number(), error: z.number() }).nullable(),
  /** Of the shown step; null without a stage that came to its end. */
  actualWaits: WaitShares.nullable(),
});
export type PredictionReport = z.infer<typeof PredictionReport>;
