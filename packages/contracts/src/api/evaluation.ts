/** What a run's evaluations measured: means with intervals, pass@k, and the paired difference from a baseline run. */
import { z } from "zod";
import { stepStates } from "../lifecycle.ts";
import { RunId } from "./runs.ts";

export const ReadEvaluation = z.strictObject({
  runId: RunId,
  /** Compare with this run's newest evaluation; absent = the run's own setting. */
  baseline: RunId.nullish(),
});

/** A mean over instances; `halfWidth` is half of the 95 % interval, null where the sample can't tell it. */
export const Estimate = z.object({ value: z.number(), halfWidth: z.number().nullable(), instances: z.int() });
export type Estimate = z.infer<typeof Estimate>;

const Scores = z.object({
  /** Mean reward of scored rollouts, each instance counted once. */
  reward: Estimate.nullable(),
  success: Estimate.nullable(),
  passAt: z.array(z.object({ k: z.int(), estimate: Estimate.nullable() })),
  instances: z.int(),
  rollouts: z.int(),
  scored: z.int(),
  /** Settled without a score (failures, cancelled): never counted as 0. */
  unscored: z.int(),
});
export const EvaluationScores = Scores;
export type EvaluationScores = z.infer<typeof Scores>;

/** Ours − theirs in success, over the instances that both measured; resampled by instance. */
export const PairedDifference = z.object({
  difference: z.number(),
  low: z.number(),
  high: z.number(),
  pValue: z.number(),
  pairs: z.int(),
});
export const EvaluationReport = z.object({
  runId: z.string(),
  /** Newest first, at most 200. */
  evaluations: z.array(
    z.object({
      version: z.int(),
      state: z.enum(stepStates),
      all: Scores,
      /** One entry per task set, in the config's order. */
      taskSets: z.array(z.object({ taskSet: z.string(), scores: Scores })),
    }),
  ),
  samplesPerInstance: z.int(),
  baseline: z
    .object({
      runId: z.string(),
      runName: z.string(),
      version: z.int(),
      success: PairedDifference.nullable(),
      reward: PairedDifference.nullable(),
      resamples: z.int(),
    })
    .nullable(),
});
export type EvaluationReport = z.infer<typeof EvaluationReport>;
