/**
 * The reconciler in virtual time: it plans whenever rows changed or a timer is due, a burst of changes costs one plan, and plans
 * of one burst keep their distance, as the live one's do.
 */

import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { Action, Plan } from "@rolldeck/contracts/plan";
import { gradingReserve } from "../lease-budget.ts";
import { plan } from "../plan.ts";
import type { EventQueue } from "./event-queue.ts";
import type { RunRows } from "./run-rows.ts";
import type { WaitCause } from "./simulation.ts";
import { noOverheads, type Overheads } from "./simulation-input.ts";

/** Rounds before the live reconciler goes back through the queue. */
const maxRounds = 5;

export class SimulatedReconciler {
  readonly #rows: RunRows;
  readonly #queue: EventQueue;
  readonly #apply: (action: Action) => void;
  readonly #overheads: Overheads;
  #state: "idle" | "waits" | "plans" = "idle";
  #woken = false;
  #round = 0;
  #timerAt: number | null = null;
  plans = 0;

  constructor(rows: RunRows, queue: EventQueue, apply: (action: Action) => void) {
    this.#rows = rows;
    this.#queue = queue;
    this.#apply = apply;
    this.#overheads = rows.input.overheads ?? noOverheads;
  }

  /** Something changed that the planner should see. */
  wake(): void {
    this.#woken = true;
    if (this.#state !== "idle") return;
    this.#round = 0;
    this.#waitThenPlan(this.#overheads.wakeMs);
  }

  #waitThenPlan(ms: number): void {
    this.#state = "waits";
    this.#queue.after(ms, () => this.#plan());
  }

  #plan(): void {
    this.#state = "plans";
    this.#woken = false;
    this.#timerAt = null;
    this.plans += 1;
    const readAt = this.#queue.now;
    const planned = plan(this.#rows.snapshot(readAt), this.#rows.input.pools);
    if (this.#overheads.planMs === 0) this.#commit(planned, readAt);
    else this.#queue.after(this.#overheads.planMs, () => this.#commit(planned, readAt));
  }

  #commit({ actions, wakeAt }: Plan, readAt: number): void {
    this.#rows.tally.planned(this.#queue.now);
    for (const action of actions) this.#apply(action);
    this.#nameWaits();
    this.#state = "idle";
    if (this.#woken || (wakeAt !== null && wakeAt <= readAt)) {
      this.#round += 1;
      const { roundMs, wakeMs } = this.#overheads;
      this.#waitThenPlan(this.#round % maxRounds === 0 ? wakeMs : roundMs);
      return;
    }
    if (wakeAt === null) return;
    this.#timerAt = wakeAt;
    this.#queue.after(wakeAt - this.#queue.now, () => {
      if (this.#timerAt === wakeAt) this.wake();
    });
  }

  /**
   * What the lines of the stages wait for now, as settings that could be changed: `explain` tells people why one rollout waits, and
   * of a bound not which of two slots it is.
   */
  #nameWaits(): void {
    for (const stage of stages) this.#rows.tally.waitsFor(this.#queue.now, stage, this.#causeOf(stage));
  }

  #causeOf(stage: Stage): WaitCause {
    const { held, input } = this.#rows;
    const { pools, config, taskSandboxes } = input;
    const { bounds } = config.dispatcher;
    const needsSandbox = taskSandboxes.some((need) => need !== "none");
    if (stage === "run") return "run-slot";
    if (stage === "evaluate") {
      const full = held.gradeSlot >= Math.min(pools.gradeSlot, bounds.evaluate);
      return full || !needsSandbox ? "grade-slot" : "sandbox";
    }
    if (held.initSlot >= Math.min(pools.initSlot, bounds.init)) return "init-slot";
    // Agents are not let into the last sandboxes: those are for grading.
    const reserved = gradingReserve(pools.sandbox, bounds);
    if (needsSandbox && held.sandbox >= pools.sandbox - reserved) return "sandbox";
    // What is prepared waits for the run stage, and init waits for that in its turn.
    return "run-slot";
  }
}
