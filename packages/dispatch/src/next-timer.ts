/** When to plan again if nothing happens before: the earliest lease, back-off, deadline or budget that is still to come. */
import { leaseMs } from "@rolldeck/contracts/jobs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { Action } from "@rolldeck/contracts/plan";
import { hoursEndAt } from "./end-of-run.ts";
import type { Facts } from "./facts.ts";
import { restartTimes } from "./restart-tail.ts";
import { nextLookAt } from "./run-limit.ts";
import { deadlineOf } from "./supervise-rollouts.ts";

/** A run is looked at once a day at least: what a config says may lie beyond all that a database can write as a time. */
const longestMs = 86_400_000;

/**
 * @param nextStartAt when the start rate lets the next rollout in, milliseconds
 * @returns milliseconds of the database's clock, `now` when the actions call for a next plan, null for never
 */
export function nextTimer(facts: Facts, actions: readonly Action[], nextStartAt: number | null = null): number | null {
  const { now } = facts.snapshot;
  const wishes = [...actions.map((action) => afterAction(action, now)), ...standingTimers(facts), nextStartAt];
  const due = wishes.filter((at) => at !== null).reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  return due === Number.POSITIVE_INFINITY ? null : Math.min(due, now + longestMs);
}

function afterAction(action: Action, now: number): number | null {
  switch (action.do) {
    case "admit":
    case "redeliver":
    case "prepare":
    case "redeliver-update":
      return now + leaseMs;
    case "begin-update":
      // The next step gathers at once.
      return action.leave === undefined ? now + leaseMs : now;
    case "retry":
    case "regrade":
      return action.notBefore;
    case "move-run":
      return endedRunStatuses.includes(action.to) || action.to === "paused" ? null : now;
    case "create-step":
    case "add-groups":
    case "set-aside":
    case "set-run-limit":
    case "settle":
    case "end-step":
      return now;
    case "note":
      return null;
  }
}

function standingTimers(facts: Facts): number[] {
  const { snapshot, openSteps, unsettled } = facts;
  const { now, status } = snapshot;
  if (status === "paused" || endedRunStatuses.includes(status)) return [];
  const times = [
    facts.modelReady ? null : snapshot.prepareLeaseUntil,
    hoursEndAt(snapshot),
    snapshot.config.stepSource === "driven" ? snapshot.trainerLeaseUntil : null,
    ...openSteps.map(({ state, updateLeaseUntil }) => (state === "updating" ? updateLeaseUntil : null)),
  ];
  for (const rollout of unsettled) {
    if (rollout.state === "waiting") times.push(rollout.notBefore);
    else times.push(rollout.leaseUntil);
    if (rollout.state === "active") times.push(deadlineOf(facts, rollout));
  }
  if (status === "running") times.push(nextLookAt(facts), ...restartTimes(facts));
  return times.filter((at): at is number => at !== null && at > now);
}
