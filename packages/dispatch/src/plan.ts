/**
 * The planner: one snapshot of a run → what to do now, and when to look again. Pure and deterministic; it keeps nothing
 * between plans. Invariants: every action is an edge of the lifecycle tables from the snapshot's own state; a plan of the rows
 * that its actions left repeats none of them; whatever state a run is in, some event or timer leads on.
 */
import type { Action, Plan, ResourceCounts, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { type Admissions, admissions } from "./admissions.ts";
import { endOfRun, prepareEnd, type RunEnd, spentBudget, windDown } from "./end-of-run.ts";
import { type Facts, factsOf, isPast } from "./facts.ts";
import { gatheredSteps, updateAgain } from "./gathered-steps.ts";
import { nextTimer } from "./next-timer.ts";
import { endAtRefusedStep } from "./refused-step.ts";
import { dispatcherNamed } from "./registry.ts";
import { restartTail } from "./restart-tail.ts";
import { isInFlight, isUntouched } from "./rollout-state.ts";
import { runLimit } from "./run-limit.ts";
import type { SetAside } from "./set-aside.ts";
import { drivenSteps, plannedSteps } from "./steps.ts";
import { endOverdue, superviseRollouts } from "./supervise-rollouts.ts";

/** @param grants leases the run may hold in all, by resource */
export function plan(snapshot: RunSnapshot, grants: ResourceCounts): Plan {
  const { actions, wakeAt } = planWithWaits(snapshot, grants);
  return { actions, wakeAt };
}

/** @returns the plan, and why each rollout was not admitted that it looked at; null where it admits nobody */
export function planWithWaits(snapshot: RunSnapshot, grants: ResourceCounts): Plan & Pick<Outcome, "waits"> {
  const facts = factsOf(snapshot);
  const { actions, waits, nextStartAt } = outcomeOf(facts, grants);
  return { actions, waits, wakeAt: nextTimer(facts, actions, nextStartAt) };
}

interface Outcome extends Pick<Admissions, "nextStartAt"> {
  readonly actions: readonly Action[];
  readonly waits: Admissions["waits"] | null;
}

function outcomeOf(facts: Facts, grants: ResourceCounts): Outcome {
  return facts.snapshot.status === "running" ? running(facts, grants) : only(otherwise(facts));
}

function otherwise(facts: Facts): Action[] {
  switch (facts.snapshot.status) {
    case "queued":
      return [...moveRun(facts, "preparing", null), ...prepareWhereNeeded(facts)];
    case "preparing":
      return preparing(facts);
    case "pausing":
      return pausing(facts);
    case "running":
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

function running(facts: Facts, grants: ResourceCounts): Outcome {
  const end = endOfRun(facts);
  if (end !== null) return only(finish(facts, end));
  if (trainerIsSilent(facts))
    return only(moveRun(facts, "pausing", "the trainer's lease has ended without a sign of it"));
  const prepare = prepareWhereNeeded(facts);
  // Past a hard budget nothing is sampled any more; only the update under way is waited for.
  if (spentBudget(facts.snapshot) !== null) return only([...prepare, ...updatesAgain(facts)]);
  const gathered = gatheredSteps(facts);
  const refused = endAtRefusedStep(facts, gathered.moves);
  if (refused !== null) return only(refused);
  const supervised = superviseRollouts(facts, new Set(gathered.aside.map(({ groupId }) => groupId)));
  const driven = facts.snapshot.config.stepSource === "driven";
  const steps = [...gathered.moves, ...gathered.added, ...(driven ? drivenSteps(facts) : plannedSteps(facts))];
  const before = [...prepare, ...supervised, ...gathered.aside, ...steps];
  const admitted = admit(facts, grants, touchedBy(facts, supervised, gathered.aside));
  const after = [...admitted.actions, ...runLimit(facts)];
  const drained = [...before, ...after].every(({ do: kind }) => kind === "prepare" || kind === "set-run-limit");
  const pause = drained && isDrained(facts);
  const done = pause ? moveRun(facts, "pausing", "what was started has come to its end") : [];
  return { ...admitted, actions: [...before, ...after, ...done] };
}

const only = (actions: readonly Action[]): Outcome => ({ actions, waits: null, nextStartAt: null });

/** Rollouts that a plan's other actions move: no stage of theirs starts in the same plan. */
function touchedBy(facts: Facts, supervised: readonly Action[], aside: readonly SetAside[]): ReadonlySet<string> {
  const gone = new Set(aside.map(({ groupId }) => groupId));
  return new Set([
    ...supervised.flatMap((action) => ("rolloutId" in action ? [action.rolloutId] : [])),
    ...facts.unsettled.filter(({ groupId }) => gone.has(groupId)).map(({ rolloutId }) => rolloutId),
  ]);
}

function admit(facts: Facts, grants: ResourceCounts, touched: ReadonlySet<string>): Outcome {
  const dispatcher = dispatcherNamed(facts.snapshot.config.dispatcher.name);
  if (dispatcher === undefined) return only([]);
  const { actions, waits, nextStartAt, idleRunSlots } = admissions(facts, dispatcher, grants, touched);
  return { actions: [...actions, ...restartTail(facts, idleRunSlots, touched)], waits, nextStartAt };
}

/** Nothing that was begun is left; what a person holds waits for that person. */
function isDrained({ snapshot, openSteps, unsettled, groupOf }: Facts): boolean {
  if (!snapshot.draining || openSteps.some(({ state }) => state === "updating")) return false;
  const rests = (rollout: RolloutSnapshot): boolean =>
    isUntouched(rollout) || (rollout.state === "waiting" && (rollout.held || (groupOf(rollout)?.row?.held ?? false)));
  return unsettled.every(rests);
}

const updatesAgain = (facts: Facts): Action[] =>
  facts.openSteps.filter(({ state }) => state === "updating").flatMap((step) => updateAgain(facts, step));

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
  const again = [...updatesAgain(facts), ...endOverdue(facts)];
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
