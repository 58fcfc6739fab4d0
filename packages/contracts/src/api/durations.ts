/**
 * How long the stages of a run's rollouts took, for predictions: `/api/v1/runs/{id}/durations`. Columns of equal length; entry i of
 * each is one rollout that was scored at its last attempt. Milliseconds of the stage's own work, without any waiting.
 */
import { z } from "zod";
import { RunId } from "./runs.ts";

export const ReadDurations = z.strictObject({
  runId: RunId,
  purpose: z.enum(["train", "evaluate"]).default("train"),
  /** Of the newest rollouts so many. */
  limit: z.int().min(1).max(8192).default(4096),
});

const whole = z.array(z.int());
const ms = z.array(z.number());
export const Durations = z.object({
  runId: z.string(),
  rollouts: z.object({
    /** Place in config.taskSets. */
    taskSet: whole,
    instanceIndex: whole,
    initMs: ms,
    /** Its init made an environment of the run anew (`fixed-pool`) instead of opening a sandbox. */
    reset: z.array(z.boolean()),
    runMs: ms,
    evaluateMs: ms,
    /** Of runMs, what calls of the model took. */
    modelMs: ms,
    sampledTokens: whole,
    turns: whole,
  }),
  /** The newest steps of this purpose that are over, oldest first. */
  steps: z.object({
    step: whole,
    /** From its creation to its end. */
    stepMs: ms,
    /** Of that, the update; 0 where there was none. */
    updateMs: ms,
  }),
});
export type Durations = z.infer<typeof Durations>;
