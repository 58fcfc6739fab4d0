/**
 * Three stages with bounds of their own and back-pressure between them: init runs ahead of run by at most its own bound, what
 * it is at included. Sandboxes are bounded by their pool alone, less what the planner keeps for grading.
 */
import { bound, type Dispatcher, sandboxLease, stageIsFull } from "../dispatcher.ts";

export const pipeline: Dispatcher = {
  description:
    "Overlaps init, run and evaluate, each within its bound; init never runs further ahead than its own bound.",
  bar(stage, load, bounds) {
    const prepared = load.inFlight.init + load.waiting.run;
    if (stage !== "init" || prepared < bounds.init) return stageIsFull(stage, load, bounds);
    return bound(`${prepared} rollouts are prepared or about to be and not taken by run yet, the bound of init`);
  },
  leases(stage, needsSandbox) {
    if (stage === "init") return [{ resource: "initSlot", until: "init" }, ...sandboxLease(needsSandbox, "run")];
    if (stage === "run") return [{ resource: "runSlot", until: "run" }];
    return [{ resource: "gradeSlot", until: "evaluate" }, ...sandboxLease(needsSandbox, "evaluate")];
  },
};
