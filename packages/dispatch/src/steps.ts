/**
 * Which step comes next. Synchronous: nothing starts while a step is open, so every rollout of a step samples one version. A
 * driven run's steps come from its trainer instead, one per batch request.
 */
import type { Action, NewGroup, Purpose } from "@rolldeck/contracts/plan";
import { type Facts, isOpen } from "./facts.ts";
import { pickInstances } from "./pick-instances.ts";

export interface NextStep {
  readonly purpose: Purpose;
  readonly step: number;
}

/** Number of the newest train step that is over, with or without an update; 0 before the first. */
export function stepsTaken({ snapshot }: Facts): number {
  const over = snapshot.steps.filter((step) => step.purpose === "train" && !isOpen(step));
  // An outside trainer counts its versions in its own way.
  const updates = snapshot.config.stepSource === "driven" ? 0 : (snapshot.servingVersion ?? 0);
  return over.reduce((newest, { step }) => Math.max(newest, step), updates);
}

/** The step to create once none is open, or null: the run has done all its steps. */
export function nextStep(facts: Facts): NextStep | null {
  const { config, servingVersion } = facts.snapshot;
  if (servingVersion === null) return null;
  const taken = stepsTaken(facts);
  const over = config.kind === "evaluate" || taken >= config.budget.steps;
  if (evaluationIsDue(facts, servingVersion, over)) return { purpose: "evaluate", step: servingVersion };
  return over ? null : { purpose: "train", step: taken + 1 };
}

/** At version 0, every N versions, and at the end; once per version. */
function evaluationIsDue(facts: Facts, version: number, over: boolean): boolean {
  const { config, steps } = facts.snapshot;
  const { every, samples } = config.evaluation;
  if (samples === 0 || groupsOf(facts, { purpose: "evaluate", step: version }).length === 0) return false;
  const onBeat = version === 0 || (every > 0 && version % every === 0);
  if (!onBeat && !over) return false;
  return !steps.some(({ purpose, step }) => purpose === "evaluate" && step === version);
}

export const groupsOf = ({ snapshot }: Facts, { purpose, step }: NextStep): NewGroup[] =>
  pickInstances(snapshot.config, snapshot.taskSizes, step, purpose);

/** Creates the planned run's next step when it may start. */
export function plannedSteps(facts: Facts): Action[] {
  if (!facts.modelReady || facts.openSteps.length > 0) return [];
  const next = nextStep(facts);
  if (next === null) return [];
  const { algorithm, evaluation } = facts.snapshot.config;
  const groupSize = next.purpose === "train" ? algorithm.groupSize : evaluation.samplesPerInstance;
  return [{ do: "create-step", ...next, source: "planned", batchId: null, groups: groupsOf(facts, next), groupSize }];
}

/** Creates a step for every batch request that has none. */
export const drivenSteps = ({ snapshot, modelReady }: Facts): Action[] =>
  !modelReady
    ? []
    : snapshot.batchRequests.map(({ batchId, trainerStep, groups, groupSize }) => ({
        do: "create-step",
        purpose: "train",
        step: trainerStep,
        source: "driven",
        batchId,
        groups,
        groupSize,
      }));
