/**
 * What follows when a step has gathered: an update where there is something to train, the end of the step where there is not;
 * and groups that are set aside or drawn on the way there. Invariant: an update begins only on a step with at least one scored
 * rollout that its group policy keeps.
 */
import type { Action, StepSnapshot } from "@rolldeck/contracts/plan";
import { type Facts, isPast, isPlannedTrain } from "./facts.ts";
import { gatherAhead } from "./gather-ahead.ts";
import { endingCounts, type Gathered, gatherStep, nothing, withoutUpdate } from "./gather-step.ts";
import { maxUpdateFailures } from "./limits.ts";
import { moreGroups } from "./more-groups.ts";
import { isScored } from "./rollout-state.ts";

/** Groups set aside come first: their rollouts are no longer what an update waits for. */
export function gatheredSteps(facts: Facts): Gathered & { readonly added: readonly Action[] } {
  const parts = facts.openSteps.map((step) => {
    const gathered = afterGathering(facts, step);
    // A step whose update begins takes no more; the next one does, at the next plan.
    const gathers = step.state === "gathering" && isPlannedTrain(step) && gathered.moves.length === 0;
    return { ...gathered, added: gathers ? moreGroups(facts, step, gathered.aside) : [] };
  });
  return {
    aside: parts.flatMap(({ aside }) => aside),
    moves: parts.flatMap(({ moves }) => moves),
    added: parts.flatMap(({ added }) => added),
  };
}

function afterGathering(facts: Facts, step: StepSnapshot): Gathered {
  if (step.state === "updating") return { ...nothing, moves: updateAgain(facts, step) };
  if (!isPlannedTrain(step)) return { ...nothing, moves: afterLast(facts, step) };
  return facts.maxStaleness > 0 ? gatherAhead(facts, step) : gatherStep(facts, step);
}

/** The update's worker was lost, or the try failed and its back-off is over. */
export function updateAgain(facts: Facts, step: StepSnapshot): Action[] {
  if (step.updateFailures > maxUpdateFailures) return [];
  if (!facts.modelReady || !isPast(step.updateLeaseUntil, facts.snapshot.now)) return [];
  return [{ do: "redeliver-update", stepId: step.stepId }];
}

/** An evaluation, or a batch of an outside trainer, is done when the last of its rollouts is settled. */
function afterLast(facts: Facts, step: StepSnapshot): Action[] {
  const rollouts = facts.rolloutsOf(step);
  if (rollouts.some(({ state }) => state !== "settled")) return [];
  if (step.source === "planned" && !rollouts.some(isScored)) {
    return withoutUpdate(step, `no rollout of the evaluation was scored: ${endingCounts(rollouts)}`);
  }
  return [{ do: "end-step", stepId: step.stepId, from: step.state, to: "done", reason: null }];
}
