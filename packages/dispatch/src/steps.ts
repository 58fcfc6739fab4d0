/**
 * Which step comes next. Without staleness nothing starts while a step is open, so every rollout of a step samples one version;
 * with it a train step gathers while the one before is updated, and an evaluation is measured beside it. A driven run's steps
 * come from its trainer instead, one per batch request.
 */
import type { Action, NewGroup, Purpose, StepSnapshot } from "@rolldeck/contracts/plan";
import { drawGroups } from "./draw-groups.ts";
import { type Facts, isOpen, isPlannedTrain } from "./facts.ts";
import { pickInstances } from "./pick-instances.ts";

export interface NextStep {
  readonly purpose: Purpose;
  readonly step: number;
}

/** Number of the newest train step that is over, with or without an update; 0 before the first. */
export const stepsTaken = (facts: Facts): number => newestStep(facts, (step) => !isOpen(step));

function newestStep({ snapshot }: Facts, counts: (step: StepSnapshot) => boolean): number {
  // An outside trainer counts its versions in its own way.
  const updates = snapshot.config.stepSource === "driven" ? 0 : (snapshot.servingVersion ?? 0);
  return snapshot.steps
    .filter((step) => step.purpose === "train" && counts(step))
    .reduce((newest, { step }) => Math.max(newest, step), updates);
}

/** The step to create once none is open, or null: the run has done all its steps. */
export function nextStep(facts: Facts): NextStep | null {
  const { servingVersion } = facts.snapshot;
  if (servingVersion === null) return null;
  return dueEvaluation(facts) ?? nextTrainStep(facts);
}

/** Its number is above that of every step so far, also of one whose update is under way. */
function nextTrainStep(facts: Facts): NextStep | null {
  const newest = newestStep(facts, () => true);
  return isLast(facts, newest) ? null : { purpose: "train", step: newest + 1 };
}

const isOver = (facts: Facts): boolean => isLast(facts, stepsTaken(facts));

function isLast({ snapshot }: Facts, step: number): boolean {
  const { kind, budget } = snapshot.config;
  return kind === "evaluate" || step >= budget.steps;
}

/** Of the version that serves: at version 0, every N versions, and at the end; once per version. Null = none is due. */
export function dueEvaluation(facts: Facts): NextStep | null {
  const { config, steps, servingVersion: version } = facts.snapshot;
  const { every, samples } = config.evaluation;
  if (version === null || samples === 0) return null;
  const onBeat = version === 0 || (every > 0 && version % every === 0);
  if (!onBeat && !isOver(facts)) return null;
  if (steps.some(({ purpose, step }) => purpose === "evaluate" && step === version)) return null;
  const next = { purpose: "evaluate", step: version } as const;
  return groupsFor(facts, next).length === 0 ? null : next;
}

/** Instances of a step that is to be created. */
export function groupsFor(facts: Facts, { purpose, step }: NextStep): NewGroup[] {
  const { config, taskSizes, groupsDrawn } = facts.snapshot;
  if (purpose === "evaluate") return pickInstances(config, taskSizes, step, purpose);
  const { groupsPerStep } = config.algorithm;
  const wanted = groupsPerStep + config.dispatcher.overSample.groups;
  const count = facts.maxStaleness > 0 ? Math.min(wanted, groupsAllowed(facts)) : wanted;
  return drawGroups(facts.snapshot, groupsDrawn ?? (step - 1) * groupsPerStep, count);
}

/**
 * Groups that may be in open train steps together, not counting those set aside: what the updates to come within the staleness
 * bound can take.
 */
export function openGroupsAllowed(facts: Facts): number {
  const { algorithm, budget } = facts.snapshot.config;
  // Not those since the newest that is over: the step after an update under way may be cancelled before it.
  const left = facts.openSteps.filter(isPlannedTrain).length + budget.steps - newestStep(facts, () => true);
  const updatesAhead = Math.min(facts.maxStaleness + 1, left);
  return Math.max(0, updatesAhead) * algorithm.groupsPerStep;
}

/** How many of them are not open yet. */
export function groupsAllowed(facts: Facts, isLeaving: (groupId: string) => boolean = () => false): number {
  const open = facts.openSteps.filter(isPlannedTrain).flatMap((step) => facts.liveGroupsOf(step));
  return Math.max(0, openGroupsAllowed(facts) - open.filter(({ groupId }) => !isLeaving(groupId)).length);
}

/** Rollouts that a train group starts with. */
export const startedPerGroup = ({ snapshot }: Facts): number =>
  snapshot.config.algorithm.groupSize + snapshot.config.dispatcher.overSample.rollouts;

/** Creates the planned run's next steps when they may start. */
export function plannedSteps(facts: Facts): Action[] {
  if (!facts.modelReady || facts.snapshot.draining) return [];
  const next = facts.maxStaleness > 0 ? stepsBeside(facts) : stepAlone(facts);
  return next.map((step): Action => {
    const { samplesPerInstance } = facts.snapshot.config.evaluation;
    const groupSize = step.purpose === "train" ? startedPerGroup(facts) : samplesPerInstance;
    return { do: "create-step", ...step, source: "planned", batchId: null, groups: groupsFor(facts, step), groupSize };
  });
}

function stepAlone(facts: Facts): NextStep[] {
  const next = facts.openSteps.length > 0 ? null : nextStep(facts);
  return next === null ? [] : [next];
}

/**
 * A train step is made by the update before it; here are the first one, the one after a step that was given up (beside the update under
 * way, if there is one), and evaluations, which wait for no step.
 */
function stepsBeside(facts: Facts): NextStep[] {
  const { openSteps } = facts;
  const updating = openSteps.some(({ state }) => state === "updating");
  const evaluating = openSteps.some(({ purpose }) => purpose === "evaluate");
  const evaluation = updating || evaluating ? null : dueEvaluation(facts);
  const gathers = openSteps.some((step) => isPlannedTrain(step) && step.state === "gathering");
  const train = gathers ? null : nextTrainStep(facts);
  const startable = train !== null && groupsFor(facts, train).length > 0 ? train : null;
  return [evaluation, startable].filter((step) => step !== null);
}

/** Creates a step for every batch request that has none. */
export const drivenSteps = ({ snapshot, modelReady }: Facts): Action[] =>
  !modelReady || snapshot.draining
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
