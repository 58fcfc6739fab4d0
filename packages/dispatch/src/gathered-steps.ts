/**
 * What follows when every rollout of a step is settled: an update where there is something to train, the end of the step where
 * there is not. Invariant: an update begins only on a step with at least one scored rollout that its group policy keeps.
 */
import { endingRule } from "@rolldeck/contracts/endings";
import type { Action, RolloutSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";
import { type Facts, isPast, isScored } from "./facts.ts";
import { maxUpdateFailures } from "./limits.ts";

export const gatheredSteps = (facts: Facts): Action[] =>
  facts.openSteps.flatMap((step) =>
    step.state === "updating" ? updateAgain(facts, step) : afterGathering(facts, step),
  );

/** The update's worker was lost, or the try failed and its back-off is over. */
export function updateAgain(facts: Facts, step: StepSnapshot): Action[] {
  if (step.updateFailures > maxUpdateFailures) return [];
  if (!facts.modelReady || !isPast(step.updateLeaseUntil, facts.snapshot.now)) return [];
  return [{ do: "redeliver-update", stepId: step.stepId }];
}

function afterGathering(facts: Facts, step: StepSnapshot): Action[] {
  const rollouts = facts.rolloutsOf(step);
  if (rollouts.some(({ state }) => state !== "settled")) return [];
  if (step.source === "driven") return [endStep(step, "done", null)];
  if (step.purpose === "evaluate") {
    if (rollouts.some(isScored)) return [endStep(step, "done", null)];
    return withoutScores(step, `no rollout of the evaluation was scored: ${endingCounts(rollouts)}`);
  }
  const drop = facts.snapshot.config.algorithm.groupPolicy === "drop-group";
  if (hasTrainable(rollouts, drop)) return facts.modelReady ? [{ do: "begin-update", stepId: step.stepId }] : [];
  const cause = rollouts.some(isScored) ? "every group was dropped" : "no rollout was scored";
  return withoutScores(step, `${cause}: ${endingCounts(rollouts)}`);
}

const endStep = ({ stepId, state }: StepSnapshot, to: "done" | "failed", reason: string | null): Action => ({
  do: "end-step",
  stepId,
  from: state,
  to,
  reason,
});

function withoutScores(step: StepSnapshot, reason: string): Action[] {
  const what = step.purpose === "train" ? `Step ${step.step} made no update` : `Version ${step.step} was not measured`;
  return [endStep(step, "failed", reason), { do: "note", level: "warning", message: `${what}: ${reason}` }];
}

function hasTrainable(rollouts: readonly RolloutSnapshot[], dropIncomplete: boolean): boolean {
  const incomplete = new Set(rollouts.filter((rollout) => !isScored(rollout)).map(({ groupId }) => groupId));
  return rollouts.some((rollout) => isScored(rollout) && !(dropIncomplete && incomplete.has(rollout.groupId)));
}

/** `12 × worker lost, 4 × verifier error`, most frequent first. */
function endingCounts(rollouts: readonly RolloutSnapshot[]): string {
  const counts = new Map<string, number>();
  for (const { ending } of rollouts) {
    const label = ending === null ? "no ending" : endingRule(ending).label;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  if (counts.size === 0) return "it had no rollouts";
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([label, count]) => `${count} × ${label}`)
    .join(", ");
}
