/**
 * The planner: one snapshot of a run → what to do now, and when to look again. Pure and deterministic; it keeps nothing
 * between plans. Invariants: every action is an edge of the lifecycle tables from the snapshot's own state; a plan of the rows
 * that its actions left repeats none of them; whatever state a run is in, some event or timer leads on.
 */
import type { Action, Plan, ResourceCounts, RunSnapshot } from "@rolldeck/contracts/plan";
import { admissions } from "./admissions.ts";
import { endOfRun, prepareEnd, type RunEnd, spentBudget, windDown } from "./end-of-run.ts";
import { type Facts, factsOf, isInFlight, isPast } from "./facts.ts";
import { gatheredSteps, updateAgain } from "./gathered-steps.ts";
import { nextTimer } from "./next-timer.ts";
import { dispatcherNamed } from "./registry.ts";
import { drivenSteps, plannedSteps } from "./steps.ts";
import { endOverdue, superviseRollouts } from "./supervise-rollouts.ts";

/** @param grants leases the run may hold in all, by resource */
export function plan(snapshot: RunSnapshot, grants: ResourceCounts): Plan {
  const facts = factsOf(snapshot);
  const actions = actionsOf(facts, grants);
  return { actions, wakeAt: nextTimer(facts, actions) };
}

function actionsOf(facts: Facts, grants: ResourceCounts): Action[] {
  switch (facts.snapshot.status) {
    case "queued":
      return [...moveRun(facts, "preparing", null), ...prepareWhereNeeded(facts)];
    case "preparing":
      return preparing(facts);
    case "running":
      return running(facts, grants);
    case "pausing":
      return pausing(facts);
    case "paused":
      return [];
    case "stopping":
      return stopping(facts);
    case "stopped":
    case "completed":
    case "failed":
      // What a race left open when the run ended.
      return windDown(facts, `the run is ${facts.snapshot.status}`);
  }
}

const moveRun = ({ snapshot }: Facts, to: RunSnapshot["status"], reason: string | null): Action[] => [
  { do: "move-run", from: snapshot.status, to, reason },
];

const finish = (facts: Facts, { to, reason }: RunEnd): Action[] => [
  ...windDown(facts, reason),
  ...moveRun(facts, to, reason),
];

/** Creates the model, or adopts it again after the backend came back as another boot. */
const prepareWhereNeeded = ({ snapshot, modelReady }: Facts): Action[] =>
  modelReady || !isPast(snapshot.prepareLeaseUntil, snapshot.now) ? [] : [{ do: "prepare" }];

function preparing(facts: Facts): Action[] {
  const end = prepareEnd(facts);
  if (end !== null) return finish(facts, end);
  return facts.modelReady ? moveRun(facts, "running", null) : prepareWhereNeeded(facts);
}

function running(facts: Facts, grants: ResourceCounts): Action[] {
  const end = endOfRun(facts);
  if (end !== null) return finish(facts, end);
  if (trainerIsSilent(facts)) return moveRun(facts, "pausing", "the trainer's lease has ended without a sign of it");
  const prepare = prepareWhereNeeded(facts);
  // Past a hard budget nothing is sampled any more; only the update under way is waited for.
  if (spentBudget(facts.snapshot) !== null) return [...prepare, ...gatheredSteps(facts)];
  const supervised = superviseRollouts(facts);
  const steps = facts.snapshot.config.stepSource === "driven" ? drivenSteps(facts) : plannedSteps(facts);
  return [...prepare, ...supervised, ...gatheredSteps(facts), ...steps, ...admit(facts, grants, supervised)];
}

function admit(facts: Facts, grants: ResourceCounts, supervised: readonly Action[]): Action[] {
  const dispatcher = dispatcherNamed(facts.snapshot.config.dispatcher.name);
  if (dispatcher === undefined) return [];
  const touched = new Set(supervised.flatMap((action) => ("rolloutId" in action ? [action.rolloutId] : [])));
  return admissions(facts, dispatcher, grants, touched);
}

function trainerIsSilent({ snapshot }: Facts): boolean {
  const { config, trainerLeaseUntil, now } = snapshot;
  return config.stepSource === "driven" && trainerLeaseUntil !== null && trainerLeaseUntil <= now;
}

/**
 * Nothing is admitted or delivered again; stages that a worker holds come to their end or are handed back, and an update that
 * can go on is finished. What is left waits for the run to go on.
 */
function pausing(facts: Facts): Action[] {
  const { now } = facts.snapshot;
  const updating = facts.openSteps.filter(({ state }) => state === "updating");
  const again = [...updating.flatMap((step) => updateAgain(facts, step)), ...endOverdue(facts)];
  const busy =
    again.length > 0 ||
    updating.some(({ updateLeaseUntil }) => !isPast(updateLeaseUntil, now)) ||
    facts.unsettled.some((rollout) => isInFlight(rollout) && !isPast(rollout.leaseUntil, now));
  return busy ? again : moveRun(facts, "paused", null);
}

function stopping(facts: Facts): Action[] {
  const open = windDown(facts, "the run was stopped");
  return open.length > 0 ? open : moveRun(facts, "stopped", null);
}
