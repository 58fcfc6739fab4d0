/**
 * The pipeline with the longest expected rollouts first, so that the step's tail is short. What is expected comes from earlier
 * rollouts of the instance; of an instance never seen, the geometric mean of those that were. Invariant: nobody starves, for
 * every millisecond of waiting counts as much as one of expected time: a rollout is overtaken only by what came into the line
 * less than the longest expected time after it.
 */
import type { Candidate, Dispatcher } from "../dispatcher.ts";
import { pipeline } from "./pipeline.ts";

export const priority: Dispatcher = {
  ...pipeline,
  description: "As pipeline, the longest expected rollouts first, learned from earlier rollouts of the same instances.",
  compare(a, b) {
    if (a.late !== b.late) return a.late ? 1 : -1;
    // Siblings apart: a group that starts as one would end as one.
    return urgency(b) - urgency(a) || a.rollout.sample - b.rollout.sample;
  },
};

const urgency = ({ remainingMs, rollout }: Candidate): number => (remainingMs ?? 0) - rollout.readyAt;
