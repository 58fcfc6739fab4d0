/**
 * When a train step has gathered whose groups start ahead of it, and which of its groups it trains: the oldest versions first. The
 * rest moves on to the next step in the same write, and its rollouts go on. Invariants: no group is trained that lies further
 * behind the learner than the staleness bound, it is drawn again instead; one update at a time; no update begins while a version
 * is still measured; every step ends, for groups that can't be trained are counted.
 */
import type { StepSnapshot } from "@rolldeck/contracts/plan";
import { drawGroups } from "./draw-groups.ts";
import { type Facts, isPlannedTrain } from "./facts.ts";
import { type Gathered, whyNothing, withoutFlat, withoutUpdate } from "./gather-step.ts";
import { byAge, type Group } from "./group-accounting.ts";
import { maxBarrenBatches } from "./limits.ts";
import { asFlat, asideAs, asNotNeeded, replacing, type SetAside, setAside } from "./set-aside.ts";
import { dueEvaluation, openGroupsAllowed } from "./steps.ts";

/** The version that the learner has when the step that gathers is updated. */
export function learnerVersion({ snapshot, openSteps }: Facts): number {
  const updating = openSteps.find((step) => isPlannedTrain(step) && step.state === "updating");
  return updating?.step ?? snapshot.servingVersion ?? 0;
}

export function gatherAhead(facts: Facts, step: StepSnapshot): Gathered {
  const live = facts.liveGroupsOf(step);
  const stale = live.filter((group) => isStale(facts, group));
  const young = live.filter((group) => !stale.includes(group));
  const unfit = young.filter((group) => group.complete && !group.fit);
  const { now } = replacing(facts, step);
  const gone = [
    ...stale.map(asStale),
    ...unfit.map(asUnfit),
    ...now.filter((group) => young.includes(group)).map(asFlat),
  ];
  const ids = new Set(gone.map(({ groupId }) => groupId));
  const left = live.filter(({ groupId }) => !ids.has(groupId));
  return mayUpdate(facts) ? update(facts, step, gone, left) : { aside: gone, moves: [] };
}

const isStale = (facts: Facts, { firstVersion }: Group): boolean =>
  firstVersion !== null && learnerVersion(facts) - firstVersion > facts.maxStaleness;

const asStale = (group: Group): SetAside =>
  setAside(group, "stale", `it began with version ${group.firstVersion}, too far behind the next update it could join`);

const asUnfit = (group: Group): SetAside =>
  setAside(group, "cancelled", group.scored === 0 ? "none of its rollouts was scored" : "the group policy gave it up");

function mayUpdate(facts: Facts): boolean {
  const busy = facts.openSteps.some(({ state, purpose }) => state === "updating" || purpose === "evaluate");
  return facts.modelReady && !busy && dueEvaluation(facts) === null;
}

function update(facts: Facts, step: StepSnapshot, gone: readonly SetAside[], left: readonly Group[]): Gathered {
  const { needed, barren } = batchOf(facts, step, { gone, left });
  const fit = left.filter((group) => group.fit).sort(byAge);
  if (barren && fit.length === 0) {
    const rest = left.map((group) => setAside(group, "cancelled", "its step had nothing to train"));
    return { aside: [...gone, ...rest], moves: withoutUpdate(step, whyNothing(facts, step)) };
  }
  if (fit.length < needed) return { aside: gone, moves: [] };
  const chosen = fit.slice(0, needed);
  const { trained, flat } = withoutFlat(facts, chosen);
  const aside = [...gone, ...flat.map(asFlat)];
  if (trained.length === 0) return { aside, moves: [] };
  const others = left.filter((group) => !chosen.includes(group));
  const { stepId } = step;
  if (step.step >= facts.snapshot.config.budget.steps) {
    return { aside: [...aside, ...others.map(asNotNeeded)], moves: [{ do: "begin-update", stepId }] };
  }
  const leave = { step: step.step + 1, groupIds: others.map(({ groupId }) => groupId) };
  return { aside, moves: [{ do: "begin-update", stepId, leave }] };
}

/**
 * How many groups the step still needs. A group of equal rewards that was set aside had its place in the batch; one that could not
 * be trained had not, but a batch's worth of them is enough. Barren: no more is waited for.
 */
function batchOf(
  facts: Facts,
  step: StepSnapshot,
  { gone, left }: { readonly gone: readonly SetAside[]; readonly left: readonly Group[] },
) {
  const { snapshot } = facts;
  const perStep = snapshot.config.algorithm.groupsPerStep;
  const flat = replacing(facts, step).unreplaced;
  const unfit = asideAs(facts, step, "cancelled").length + gone.filter(({ as }) => as === "cancelled").length;
  const noneCome = openGroupsAllowed(facts) === 0 || drawGroups(snapshot, 0, 1).length === 0;
  const exhausted = left.every(({ complete }) => complete) && noneCome;
  const barren = exhausted || flat + unfit >= maxBarrenBatches * perStep;
  const needed = barren ? 1 : Math.max(1, perStep - (flat % perStep) - Math.max(0, unfit - perStep));
  return { needed, barren };
}
