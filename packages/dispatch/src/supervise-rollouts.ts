/**
 * Rollouts that need the planner: a failed stage, a lost worker, a stage past its deadline, a group that is given up or has all
 * that it needs.
 */
import { endingRule } from "@rolldeck/contracts/endings";
import { maxDeliveries } from "@rolldeck/contracts/jobs";
import type { Action, RolloutSnapshot } from "@rolldeck/contracts/plan";
import { type Facts, isPast, isPlannedTrain } from "./facts.ts";
import { afterFailure } from "./failed-rollout.ts";
import { isSetAside } from "./group-accounting.ts";
import { deadlineGraceMs } from "./limits.ts";

/** @param gone groups that the same plan sets aside, their rollouts with them */
export function superviseRollouts(facts: Facts, gone: ReadonlySet<string> = new Set()): Action[] {
  return facts.unsettled.flatMap((rollout) => {
    if (gone.has(rollout.groupId)) return [];
    const action = afterGroup(facts, rollout) ?? afterItself(facts, rollout);
    return action === null ? [] : [action];
  });
}

export const cancel = (
  { rolloutId, attempt }: RolloutSnapshot,
  reason: string,
  ending: "cancelled" | "not_needed" = "cancelled",
): Action => ({ do: "settle", rolloutId, attempt, outcome: "cancelled", ending, reason });

/** What is left of a group that is given up, or that has what it needs, would be sampled for nothing. */
function afterGroup(facts: Facts, rollout: RolloutSnapshot): Action | null {
  const step = facts.stepOf(rollout);
  const group = facts.groupOf(rollout);
  if (step === undefined || group === undefined) return null;
  if (group.dropped) return cancel(rollout, "its group was dropped: a sibling could not be scored");
  if (!isPlannedTrain(step)) return null;
  if (isSetAside(group)) return cancel(rollout, "its group was set aside");
  if (group.complete) return cancel(rollout, "its group has as many scored rollouts as it needs", "not_needed");
  return step.state === "updating" ? cancel(rollout, "its step's update began without it", "not_needed") : null;
}

const afterItself = (facts: Facts, rollout: RolloutSnapshot): Action | null =>
  rollout.state === "waiting" ? afterStage(facts, rollout) : watch(facts, rollout);

/** A waiting rollout whose last stage failed. */
function afterStage(facts: Facts, rollout: RolloutSnapshot): Action | null {
  const { ending } = rollout;
  if (ending === null || endingRule(ending).graded) return null;
  return afterFailure(facts, rollout, ending, rollout.reason ?? endingRule(ending).label);
}

/** Active stages past their deadline: their workers live, but will not come to an end. */
export const endOverdue = (facts: Facts): Action[] =>
  facts.unsettled.flatMap((rollout) => overdue(facts, rollout) ?? []);

function overdue(facts: Facts, rollout: RolloutSnapshot): Action | null {
  if (rollout.state !== "active" || !isPast(deadlineOf(facts, rollout), facts.snapshot.now)) return null;
  const seconds = facts.snapshot.config.dispatcher.stageTimeoutMs[rollout.stage] / 1000;
  return afterFailure(facts, rollout, "infrastructure", `the ${rollout.stage} stage passed its limit of ${seconds} s`);
}

/** A rollout whose job is on its way or whose worker acts. */
function watch(facts: Facts, rollout: RolloutSnapshot): Action | null {
  const late = overdue(facts, rollout);
  if (late !== null) return late;
  const { rolloutId, attempt, stage, state } = rollout;
  if (!isPast(rollout.leaseUntil, facts.snapshot.now)) return null;
  if (state === "active" && rollout.deliveries >= maxDeliveries) {
    const reason = `the ${stage} stage lost its worker ${rollout.deliveries} times`;
    return afterFailure(facts, rollout, "worker_lost", reason);
  }
  // Without the model the job would only wait; preparing it brings the next plan.
  if (stage === "run" && !facts.modelReady) return null;
  return { do: "redeliver", rolloutId, attempt, stage };
}

/** When the planner ends an active stage, milliseconds; the worker does it a little earlier. */
export function deadlineOf(facts: Facts, { stage, stageStartedAt }: RolloutSnapshot): number {
  if (stageStartedAt === null) return Number.POSITIVE_INFINITY;
  return stageStartedAt + facts.snapshot.config.dispatcher.stageTimeoutMs[stage] + deadlineGraceMs;
}
