/** What the planner's parts ask of a snapshot, computed once per plan. */
import { endingRule } from "@rolldeck/contracts/endings";
import type { RolloutSnapshot, RunSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";

export interface Facts {
  readonly snapshot: RunSnapshot;
  /** The version that serves can be sampled: the backend that holds the model is the one that answers now. */
  readonly modelReady: boolean;
  /** Steps that are gathering or updating, oldest first. */
  readonly openSteps: readonly StepSnapshot[];
  readonly unsettled: readonly RolloutSnapshot[];
  stepOf(rollout: RolloutSnapshot): StepSnapshot | undefined;
  rolloutsOf(step: StepSnapshot): readonly RolloutSnapshot[];
}

export function factsOf(snapshot: RunSnapshot): Facts {
  const steps = new Map(snapshot.steps.map((step) => [step.stepId, step]));
  const byStep = new Map<string, RolloutSnapshot[]>();
  for (const rollout of snapshot.rollouts) {
    const known = byStep.get(rollout.stepId);
    if (known) known.push(rollout);
    else byStep.set(rollout.stepId, [rollout]);
  }
  return {
    snapshot,
    modelReady: snapshot.servingVersion !== null && snapshot.modelBootId === snapshot.backendBootId,
    openSteps: snapshot.steps.filter(isOpen).sort((a, b) => a.createdAt - b.createdAt || a.step - b.step),
    unsettled: snapshot.rollouts.filter(({ state }) => state !== "settled"),
    stepOf: ({ stepId }) => steps.get(stepId),
    rolloutsOf: ({ stepId }) => byStep.get(stepId) ?? [],
  };
}

export const isOpen = ({ state }: StepSnapshot): boolean => state === "gathering" || state === "updating";

/** In flight: a job is on its way or a worker acts. */
export const isInFlight = ({ state }: RolloutSnapshot): boolean => state === "queued" || state === "active";

/** Its reward counts: it was graded, and its ending belongs in the baseline. */
export const isScored = ({ outcome, ending, reward }: RolloutSnapshot): boolean =>
  outcome === "completed" &&
  reward !== null &&
  Number.isFinite(reward) &&
  (ending === null || endingRule(ending).inBaseline);

/** A lease or timer that is not there, or not after now, no longer holds anybody back. */
export const isPast = (at: number | null, now: number): boolean => at === null || at <= now;
