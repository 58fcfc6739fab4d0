/** Rollouts that need the planner: a failed stage, a lost worker, a stage past its deadline, a group that is given up. */
import { endingRule } from "@rolldeck/contracts/endings";
import { maxDeliveries } from "@rolldeck/contracts/jobs";
import type { Action, RolloutSnapshot } from "@rolldeck/contracts/plan";
import { type Facts, isPast, isScored } from "./facts.ts";
import { afterFailure } from "./failed-rollout.ts";
import { deadlineGraceMs } from "./limits.ts";

export function superviseRollouts(facts: Facts): Action[] {
  const dropped = droppedGroups(facts);
  return facts.unsettled.flatMap((rollout) => {
    if (dropped.has(rollout.groupId)) return [cancel(rollout, "its group was dropped: a sibling could not be scored")];
    const action = rollout.state === "waiting" ? afterStage(facts, rollout) : watch(facts, rollout);
    return action === null ? [] : [action];
  });
}

export const cancel = ({ rolloutId, attempt }: RolloutSnapshot, reason: string): Action => ({
  do: "settle",
  rolloutId,
  attempt,
  outcome: "cancelled",
  ending: "cancelled",
  reason,
});

/** Groups that policy `drop-group` gives up: what is left of them would be sampled for nothing. */
function droppedGroups(facts: Facts): ReadonlySet<string> {
  if (facts.snapshot.config.algorithm.groupPolicy !== "drop-group") return new Set();
  const lost = facts.snapshot.rollouts.filter(
    (rollout) => rollout.state === "settled" && !isScored(rollout) && facts.stepOf(rollout)?.purpose === "train",
  );
  return new Set(lost.map(({ groupId }) => groupId));
}

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
