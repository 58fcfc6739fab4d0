/** Everything at once: the simplest policy, and the baseline that others are measured against. */
import { type Dispatcher, sandboxLease } from "../dispatcher.ts";

export const batch: Dispatcher = {
  description: "Starts every rollout of the step at once; only the pools limit how many run.",
  bar: () => null,
  leases(stage, needsSandbox) {
    if (stage === "init") return [{ resource: "initSlot", until: "init" }, ...sandboxLease(needsSandbox, "run")];
    if (stage === "run") return [{ resource: "runSlot", until: "run" }];
    return [{ resource: "gradeSlot", until: "evaluate" }, ...sandboxLease(needsSandbox, "evaluate")];
  },
};
