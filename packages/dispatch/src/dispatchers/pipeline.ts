/**
 * Three stages with bounds of their own and back-pressure between them. Init runs ahead of run by at most its own bound, and
 * agents' sandboxes, which live from init until run ends, never outnumber what the run stage can take.
 */
import { type Dispatcher, sandboxLease } from "../dispatcher.ts";

export const pipeline: Dispatcher = {
  description:
    "Overlaps init, run and evaluate, each within its bound; init never runs further ahead than run can take.",
  mayAdmit(stage, needsSandbox, load, bounds) {
    if (stage !== "init") return load.inFlight[stage] < bounds[stage];
    const prepared = load.inFlight.init + load.waiting.run;
    return prepared < bounds.init && (!needsSandbox || load.agentSandboxes < bounds.run);
  },
  leases(stage, needsSandbox) {
    if (stage === "init") return [{ resource: "initSlot", until: "init" }, ...sandboxLease(needsSandbox, "run")];
    if (stage === "run") return [{ resource: "runSlot", until: "run" }];
    return [{ resource: "gradeSlot", until: "evaluate" }, ...sandboxLease(needsSandbox, "evaluate")];
  },
};
