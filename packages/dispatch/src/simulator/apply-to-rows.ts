/**
 * Applies the planner's actions as the database does: by compare-and-set. What the rows no longer allow is refused in silence.
 * The little world of the planner's tests (testing/apply-action) applies them in a way of its own, to check the planner by more
 * than what this one believes.
 */
import type { Action } from "@rolldeck/contracts/plan";
import { isOpen } from "../facts.ts";
import { isScored } from "../rollout-state.ts";
import type { EventQueue } from "./event-queue.ts";
import type { GroupRow, RolloutRow, StepRow } from "./rollout-row.ts";
import { endlessLease, type RunRows } from "./run-rows.ts";

export interface Deliveries {
  stage(rollout: RolloutRow): void;
  update(step: StepRow): void;
}

export class ApplyToRows {
  readonly #rows: RunRows;
  readonly #queue: EventQueue;
  readonly #deliver: Deliveries;

  constructor(rows: RunRows, queue: EventQueue, deliver: Deliveries) {
    this.#rows = rows;
    this.#queue = queue;
    this.#deliver = deliver;
  }

  apply(action: Action): void {
    const rows = this.#rows;
    switch (action.do) {
      case "move-run":
        if (rows.status !== action.from) return;
        rows.status = action.to;
        rows.reason = action.reason;
        return;
      case "create-step":
        this.#createStep(action);
        return;
      case "add-groups":
        this.#addGroups(action);
        return;
      case "begin-update":
        this.#beginUpdate(action);
        return;
      case "end-step": {
        const step = rows.stepNamed(action.stepId);
        if (step?.state === action.from) rows.moveStep(step, action.to, this.#queue.now);
        return;
      }
      case "set-aside":
        this.#setAside(action);
        return;
      case "set-run-limit":
        rows.runLimit = action.to === null ? null : { limit: action.to, since: this.#queue.now };
        return;
      case "admit":
      case "retry":
      case "regrade":
      case "settle":
        this.#moveRollout(action);
        return;
      case "note":
      // No backend, worker or job is ever lost here.
      case "prepare":
      case "redeliver":
      case "redeliver-update":
        return;
    }
  }

  #createStep({ purpose, step, groups, groupSize }: Extract<Action, { do: "create-step" }>): void {
    const rows = this.#rows;
    if (rows.steps.some((other) => other.purpose === purpose && other.step === step)) return;
    const row = rows.addStep(purpose, step, this.#queue.now);
    for (const instance of groups) rows.addGroup(row, { instance, size: groupSize, replaces: null }, this.#queue.now);
  }

  #addGroups({ stepId, drawn, groups, groupSize }: Extract<Action, { do: "add-groups" }>): void {
    const step = this.#rows.stepNamed(stepId);
    if (step?.state !== "gathering" || drawn !== this.#rows.groupsDrawn) return;
    for (const { replaces, ...instance } of groups) {
      this.#rows.addGroup(step, { instance, size: groupSize, replaces }, this.#queue.now);
    }
  }

  #beginUpdate({ stepId, leave }: Extract<Action, { do: "begin-update" }>): void {
    const rows = this.#rows;
    const step = rows.stepNamed(stepId);
    if (step?.state !== "gathering") return;
    if (leave) {
      const next =
        rows.steps.find((other) => other.purpose === "train" && other.step === leave.step) ??
        rows.addStep("train", leave.step, this.#queue.now);
      for (const groupId of leave.groupIds) {
        const group = rows.groups.get(groupId);
        if (group?.stepId === stepId) rows.moveGroup(group, next.stepId);
      }
    }
    for (const group of rows.groupsOf(stepId)) this.#train(step, group);
    rows.moveStep(step, "updating", this.#queue.now);
    step.updateLeaseUntil = endlessLease;
    rows.tally.updating(this.#queue.now, 1);
    this.#deliver.update(step);
  }

  /** The group's scored rollouts go into the step's update: the first of them, where more were started than it needs. */
  #train(step: StepRow, group: GroupRow): void {
    if (group.setAside !== null) return;
    const scored = group.rollouts
      .filter(isScored)
      .sort((a, b) => (a.settledAt ?? 0) - (b.settledAt ?? 0))
      .slice(0, this.#rows.input.config.algorithm.groupSize);
    if (scored.length === 0) return;
    step.batch.push(...scored);
    const versions = scored.map(({ firstVersion }) => firstVersion ?? this.#rows.servingVersion);
    const staleness = this.#rows.servingVersion - Math.min(...versions);
    this.#rows.staleness[staleness] = (this.#rows.staleness[staleness] ?? 0) + 1;
  }

  #setAside({ groupId, stepId, as }: Extract<Action, { do: "set-aside" }>): void {
    const group = this.#rows.groups.get(groupId);
    if (group === undefined || group.stepId !== stepId || group.setAside !== null) return;
    group.setAside = as;
    const ending = as === "not-needed" ? "not_needed" : as === "stale" ? "stale" : "cancelled";
    for (const row of group.rollouts) {
      if (row.state !== "settled") this.#rows.settle(row, "cancelled", ending, this.#queue.now);
    }
  }

  #moveRollout(action: Extract<Action, { do: "admit" | "retry" | "regrade" | "settle" }>): void {
    const row = this.#rows.rollouts.get(action.rolloutId);
    if (row === undefined || row.attempt !== action.attempt || row.state === "settled") return;
    const { now } = this.#queue;
    switch (action.do) {
      case "admit":
        this.#admit(row, action);
        return;
      case "settle":
        this.#rows.settle(row, action.outcome, action.ending, now);
        return;
      case "retry":
        // A long tail is restarted while it runs.
        row.span.endedAt ??= now;
        this.#rows.leave(row, now);
        this.#rows.release(row, now);
        row.attempt += 1;
        row.ending = null;
        row.runEnding = null;
        row.firstVersion = null;
        this.#backToLine(row, "init", action.notBefore);
        return;
      case "regrade":
        if (row.stage !== "evaluate") return;
        this.#rows.leave(row, now);
        this.#rows.release(row, now, "evaluate");
        row.ending = row.runEnding;
        this.#backToLine(row, "evaluate", action.notBefore);
    }
  }

  #backToLine(row: RolloutRow, stage: RolloutRow["stage"], notBefore: number): void {
    const { now } = this.#queue;
    this.#rows.enqueue(row, stage, now, notBefore);
    if (!row.staysAway) return;
    const { tally } = this.#rows;
    const { attempt, readyAt } = row;
    this.#queue.after(notBefore - now, () => {
      if (!row.staysAway || row.attempt !== attempt || row.readyAt !== readyAt) return;
      row.staysAway = false;
      tally.backingOff(this.#queue.now, -1);
      tally.waiting(this.#queue.now, stage, 1);
    });
  }

  #admit(row: RolloutRow, { stage, leases }: Extract<Action, { do: "admit" }>): void {
    const { now } = this.#queue;
    const step = this.#rows.stepNamed(row.stepId);
    if (row.state !== "waiting" || row.stage !== stage || this.#rows.status !== "running") return;
    if (step === undefined || !isOpen(step) || !this.#rows.lease(row, leases, now)) return;
    this.#rows.leave(row, now);
    row.state = "queued";
    row.leaseUntil = endlessLease;
    this.#rows.tally.inFlight(now, stage, 1);
    if (stage === "init") this.#rows.starts.push(now);
    this.#deliver.stage(row);
  }
}
