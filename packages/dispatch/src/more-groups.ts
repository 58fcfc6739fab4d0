/**
 * Groups drawn for a step that gathers already: in the place of those set aside, and, where groups may start ahead of their
 * update, as many as the staleness bound allows. Invariant: groups of open train steps never outnumber what the updates within the
 * bound can take.
 */
import type { Action, NewGroup, StepSnapshot } from "@rolldeck/contracts/plan";
import { drawGroups } from "./draw-groups.ts";
import { type Facts, isPlannedTrain } from "./facts.ts";
import type { Group } from "./group-accounting.ts";
import { asideAs, replacing, type SetAside } from "./set-aside.ts";
import { groupsAllowed, startedPerGroup } from "./steps.ts";

type Added = Extract<Action, { do: "add-groups" }>["groups"][number];

/** @param aside groups that the same plan sets aside */
export function moreGroups(facts: Facts, step: StepSnapshot, aside: readonly SetAside[]): Action[] {
  const { snapshot } = facts;
  if (snapshot.draining || !facts.modelReady) return [];
  const drawn = snapshot.groupsDrawn ?? 0;
  const added = facts.maxStaleness > 0 ? addedAhead(facts, step, aside) : addedInPlace(facts, step);
  const fresh = drawGroups(snapshot, drawn, added.length);
  // A group drawn again takes its number all the same: each number is drawn once.
  const groups = added.flatMap(({ again, replaces }, at): Added[] => {
    const instance = again ?? fresh[at];
    return instance === undefined ? [] : [{ ...instance, replaces }];
  });
  if (groups.length === 0) return [];
  return [{ do: "add-groups", stepId: step.stepId, drawn, groups, groupSize: startedPerGroup(facts) }];
}

interface Wanted {
  /** The instance to draw again; null = the next one. */
  readonly again: NewGroup | null;
  readonly replaces: string | null;
}

const inPlaceOf = ({ groupId }: Group): Wanted => ({ again: null, replaces: groupId });

function addedInPlace(facts: Facts, step: StepSnapshot): Wanted[] {
  const { due, now } = replacing(facts, step);
  return [...due, ...now].map(inPlaceOf);
}

function addedAhead(facts: Facts, step: StepSnapshot, aside: readonly SetAside[]): Wanted[] {
  const open = facts.openSteps.filter(isPlannedTrain);
  const leaving = new Set(aside.map(({ groupId }) => groupId));
  const room = groupsAllowed(facts, (groupId) => leaving.has(groupId));
  const stale = [
    ...open.flatMap((one) => asideAs(facts, one, "stale")).filter(({ groupId }) => !facts.isReplaced(groupId)),
    ...staleNow(facts, step, aside),
  ];
  const again = stale.map(({ groupId, row }): Wanted => ({ again: row?.instance ?? null, replaces: groupId }));
  const asked = [...again, ...addedInPlace(facts, step)].slice(0, room);
  const fresh = Array.from({ length: room - asked.length }, (): Wanted => ({ again: null, replaces: null }));
  return [...asked, ...fresh];
}

function staleNow(facts: Facts, step: StepSnapshot, aside: readonly SetAside[]): Group[] {
  const ids = new Set(aside.flatMap((action) => (action.as === "stale" ? [action.groupId] : [])));
  return facts.liveGroupsOf(step).filter(({ groupId }) => ids.has(groupId));
}
