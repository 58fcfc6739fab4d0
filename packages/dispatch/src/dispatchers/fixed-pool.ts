/**
 * A fixed number of long-lived environments, such as virtual desktops: at most bounds.run rollouts work in one, from init until
 * run ends (or until grading ends, where it is graded in place). The worker resets an environment for the next rollout instead of
 * closing it. Grading elsewhere overlaps as in the pipeline.
 */
import { bound, type Dispatcher, stageIsFull } from "../dispatcher.ts";
import { pipeline } from "./pipeline.ts";

export const fixedPool: Dispatcher = {
  description: "Keeps bounds.run environments alive and resets one for each next rollout; grading overlaps.",
  bar(stage, load, bounds) {
    if (stage !== "init" || load.environments < bounds.run) return stageIsFull(stage, load, bounds);
    return bound(`${load.environments} environments are in use, the bound of run`);
  },
  leases: pipeline.leases,
  keepsEnvironments: true,
};
