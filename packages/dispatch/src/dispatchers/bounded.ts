/**
 * A fixed number of rollouts from start to end. Run slot and sandbox are held over all three stages: the agent's sandbox is
 * closed when the run stage ends, and the lease then stands for the grading one. So a started rollout waits for a grading slot
 * at most.
 */
import { stages } from "@rolldeck/contracts/lifecycle";
import { bound, type Dispatcher, type Load, sandboxLease, stageIsFull } from "../dispatcher.ts";

export const bounded: Dispatcher = {
  description: "Keeps at most bounds.run rollouts under way; a slot is held from init until the reward.",
  bar(stage, load, bounds) {
    if (stage !== "init" || started(load) < bounds.run) return stageIsFull(stage, load, bounds);
    return bound(`${started(load)} rollouts are under way, the bound of run`);
  },
  leases(stage, needsSandbox) {
    const sandbox = sandboxLease(needsSandbox, "evaluate");
    const whole = [{ resource: "runSlot", until: "evaluate" } as const, ...sandbox];
    if (stage === "init") return [{ resource: "initSlot", until: "init" }, ...whole];
    if (stage === "run") return whole;
    // A failed grading gave run slot and sandbox back; to grade again takes a sandbox, but no place among those that sample.
    return [{ resource: "gradeSlot", until: "evaluate" }, ...sandbox];
  },
};

/** Between the admission to init and the end. */
const started = ({ waiting, inFlight }: Load): number =>
  stages.reduce((sum, stage) => sum + inFlight[stage] + (stage === "init" ? 0 : waiting[stage]), 0);
