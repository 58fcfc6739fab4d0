/** Groups that no longer count to their step's update. */
import type { Action, SetAsideReason } from "@rolldeck/contracts/plan";
import type { Facts } from "./facts.ts";
import type { Group } from "./group-accounting.ts";

export type SetAside = Extract<Action, { do: "set-aside" }>;

export const setAside = ({ groupId, stepId }: Group, as: SetAsideReason, reason: string): SetAside => ({
  do: "set-aside",
  groupId,
  stepId,
  as,
  reason,
});

export const asFlat = (group: Group): SetAside =>
  setAside(group, "zero-variance", `the rewards of all its ${group.scored} scored rollouts are equal`);

export const asNotNeeded = (group: Group): SetAside =>
  setAside(group, "not-needed", "the step has as many groups as it needs");

/** How a step's groups of equal rewards are replaced by other instances, within the config's bound. */
export interface Replacing {
  /** Set aside before, and still without one in its place. */
  readonly due: readonly Group[];
  /** To be set aside and replaced now. */
  readonly now: readonly Group[];
  /** Set aside without replacement: each took a place of the batch. */
  readonly unreplaced: number;
}

export function replacing(facts: Facts, step: { readonly stepId: string }): Replacing {
  const { mode, maxReplaced } = facts.snapshot.config.dispatcher.zeroVariance;
  const flat = asideAs(facts, step, "zero-variance");
  const missing = flat.filter(({ groupId }) => !facts.isReplaced(groupId));
  if (mode !== "replace") return { due: [], now: [], unreplaced: missing.length };
  const room = Math.max(0, maxReplaced - (flat.length - missing.length));
  const due = missing.slice(0, room);
  const now = facts.liveGroupsOf(step).filter((group) => group.fit && group.flat);
  return { due, now: now.slice(0, room - due.length), unreplaced: missing.length - due.length };
}

export const asideAs = (facts: Facts, step: { readonly stepId: string }, as: SetAsideReason): Group[] =>
  facts.asideGroupsOf(step).filter(({ row }) => row?.setAside === as);
