/** Whether the run is over, and why: what went wrong too often, a budget, or all steps done. */
import type { Action, RunSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";
import { type Facts, isOpen } from "./facts.ts";
import { maxPrepareFailures, maxUnscoredSteps, maxUpdateFailures } from "./limits.ts";
import { dispatcherNamed } from "./registry.ts";
import { groupsFor, nextStep, stepsTaken } from "./steps.ts";
import { cancel } from "./supervise-rollouts.ts";

export interface RunEnd {
  readonly to: "completed" | "failed";
  readonly reason: string;
}

/** Holds from the first plan on, whatever state the model is in. */
export function prepareEnd({ snapshot, modelReady }: Facts): RunEnd | null {
  if (dispatcherNamed(snapshot.config.dispatcher.name) === undefined) {
    return { to: "failed", reason: `no dispatcher is named ${snapshot.config.dispatcher.name}` };
  }
  if (modelReady) return null;
  if (snapshot.prepareRefusal != null) return { to: "failed", reason: snapshot.prepareRefusal };
  if (snapshot.prepareFailures <= maxPrepareFailures) return null;
  const reason = `the model could not be prepared: ${snapshot.prepareFailures} tries failed`;
  return { to: "failed", reason: withCause(reason, snapshot.prepareReason) };
}

export const endOfRun = (facts: Facts): RunEnd | null =>
  prepareEnd(facts) ?? updateEnd(facts) ?? unscoredEnd(facts) ?? budgetEnd(facts) ?? stepsEnd(facts);

function updateEnd({ openSteps }: Facts): RunEnd | null {
  const broken = openSteps.find(
    ({ state, updateFailures }) => state === "updating" && updateFailures > maxUpdateFailures,
  );
  if (!broken) return null;
  const reason = `the update of step ${broken.step} failed ${broken.updateFailures} times`;
  return { to: "failed", reason: withCause(reason, broken.updateReason) };
}

/** What went wrong too often, and why it did so the last time. */
const withCause = (reason: string, cause: string | null | undefined): string =>
  cause ? `${reason}, at last because: ${cause}` : reason;

/** A step that ended `failed` had nothing to train. */
function unscoredEnd({ snapshot }: Facts): RunEnd | null {
  const ended = snapshot.steps
    .filter((step) => !isOpen(step) && step.source === "planned")
    .sort((a, b) => b.step - a.step);
  if (snapshot.config.kind === "evaluate") {
    const unmeasured = ended.some(({ purpose, state }) => purpose === "evaluate" && state === "failed");
    return unmeasured ? { to: "failed", reason: "no rollout of the evaluation was scored" } : null;
  }
  const newest = ended.filter(({ purpose }) => purpose === "train").slice(0, maxUnscoredSteps);
  if (newest.length < maxUnscoredSteps || newest.some(({ state }) => state !== "failed")) return null;
  return { to: "failed", reason: `${maxUnscoredSteps} steps in a row had no scored rollout to train` };
}

/**
 * Time and tokens are hard limits: the step under way is given up, but an update that has begun is finished. What a run costs is known
 * at the end of each step, so that limit is one of steps.
 */
function budgetEnd(facts: Facts): RunEnd | null {
  const reason = spentBudget(facts.snapshot);
  if (reason === null || facts.openSteps.some(({ state }) => state === "updating")) return null;
  return { to: "completed", reason: `${reason} after ${stepsTaken(facts)} steps` };
}

/** Which of the hard budgets is used up, in words. */
export function spentBudget(snapshot: RunSnapshot): string | null {
  const { hours, tokens, cost } = snapshot.config.budget;
  if (isPastHours(snapshot)) return `the budget of ${hours} hours was reached`;
  if (tokens !== null && snapshot.sampledTokens >= tokens) return `the budget of ${tokens} sampled tokens was reached`;
  const spent = snapshot.cost ?? null;
  if (cost !== null && spent !== null && spent.total >= cost)
    return `the cost budget of ${cost} was reached (${Number(spent.total.toPrecision(4))} by the end of step ${spent.step})`;
  return null;
}

const isPastHours = (snapshot: RunSnapshot): boolean =>
  snapshot.now >= (hoursEndAt(snapshot) ?? Number.POSITIVE_INFINITY);

/** When the budget of hours ends, milliseconds; null = never. */
export function hoursEndAt({ startedAt, config }: RunSnapshot): number | null {
  const { hours } = config.budget;
  return startedAt === null || hours === null ? null : startedAt + hours * 3_600_000;
}

function stepsEnd(facts: Facts): RunEnd | null {
  const { config, servingVersion, batchRequests } = facts.snapshot;
  if (servingVersion === null || facts.openSteps.length > 0) return null;
  const taken = stepsTaken(facts);
  if (config.stepSource === "driven") {
    if (taken < config.budget.steps || batchRequests.length > 0) return null;
    return { to: "completed", reason: `the trainer's ${taken} steps are done` };
  }
  const next = nextStep(facts);
  if (next === null) return allDone(facts, taken);
  if (next.purpose === "train" && groupsFor(facts, next).length === 0) {
    return { to: "failed", reason: "the task sets have no training instances" };
  }
  return null;
}

function allDone({ snapshot }: Facts, taken: number): RunEnd {
  if (snapshot.config.kind === "train") {
    if (snapshot.servingVersion === 0) return { to: "failed", reason: "no step had a scored rollout to train" };
    return { to: "completed", reason: taken === 1 ? "the one step is done" : `all ${taken} steps are done` };
  }
  const measured = snapshot.steps.some(({ purpose }) => purpose === "evaluate");
  if (measured) return { to: "completed", reason: "the evaluation is done" };
  return { to: "failed", reason: "there is nothing to evaluate: no held-out instances, or evaluation.samples is 0" };
}

/** Settles what is not settled and closes what is open: the run is left without anything under way. @param ended step that has its end */
export function windDown(facts: Facts, reason: string, ended?: StepSnapshot): Action[] {
  return [
    ...facts.unsettled.map((rollout) => cancel(rollout, reason)),
    ...facts.openSteps
      .filter((step) => step !== ended)
      .map(({ stepId, state }): Action => ({ do: "end-step", stepId, from: state, to: "cancelled", reason })),
  ];
}
