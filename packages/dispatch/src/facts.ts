/** What the planner's parts ask of a snapshot, computed once per plan. */
import type { RolloutSnapshot, RunSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";
import type { Bounds } from "@rolldeck/contracts/run-config";
import { type Group, groupsOf, isSetAside } from "./group-accounting.ts";
import { dispatcherNamed } from "./registry.ts";

export interface Facts {
  readonly snapshot: RunSnapshot;
  /** The version that serves can be sampled: the backend that holds the model is the one that answers now. */
  readonly modelReady: boolean;
  /** Steps that are gathering or updating, oldest first. */
  readonly openSteps: readonly StepSnapshot[];
  readonly unsettled: readonly RolloutSnapshot[];
  /** Versions that a group may lie behind; 0 = one step after the other. */
  readonly maxStaleness: number;
  /** The config's bounds, run as adaptive concurrency has it now. */
  readonly bounds: Bounds;
  stepOf(rollout: RolloutSnapshot): StepSnapshot | undefined;
  rolloutsOf(step: StepSnapshot): readonly RolloutSnapshot[];
  groupOf(rollout: RolloutSnapshot): Group | undefined;
  /** Groups of a step that count, those set aside left out. */
  liveGroupsOf(step: Pick<StepSnapshot, "stepId">): readonly Group[];
  asideGroupsOf(step: Pick<StepSnapshot, "stepId">): readonly Group[];
  /** Another group was drawn in the place of this one. */
  isReplaced(groupId: string): boolean;
}

export function factsOf(snapshot: RunSnapshot): Facts {
  const steps = new Map(snapshot.steps.map((step) => [step.stepId, step]));
  const groups = groupsOf(snapshot);
  const byStep = listsBy(snapshot.rollouts, ({ stepId }) => stepId);
  const live = listsBy(groups.values(), (group) => (isSetAside(group) ? null : group.stepId));
  const replaced = new Set((snapshot.groups ?? []).map(({ replaces }) => replaces));
  const aside = listsBy(groups.values(), (group) => (isSetAside(group) ? group.stepId : null));
  return {
    snapshot,
    modelReady: snapshot.servingVersion !== null && snapshot.modelBootId === snapshot.backendBootId,
    openSteps: snapshot.steps.filter(isOpen).sort((a, b) => a.createdAt - b.createdAt || a.step - b.step),
    unsettled: snapshot.rollouts.filter(({ state }) => state !== "settled"),
    maxStaleness: maxStalenessOf(snapshot),
    bounds: boundsOf(snapshot),
    stepOf: ({ stepId }) => steps.get(stepId),
    rolloutsOf: ({ stepId }) => byStep.get(stepId) ?? [],
    groupOf: ({ groupId }) => groups.get(groupId),
    liveGroupsOf: ({ stepId }) => live.get(stepId) ?? [],
    asideGroupsOf: ({ stepId }) => aside.get(stepId) ?? [],
    isReplaced: (groupId) => replaced.has(groupId),
  };
}

function listsBy<T>(items: Iterable<T>, key: (item: T) => string | null): Map<string, T[]> {
  const lists = new Map<string, T[]>();
  for (const item of items) {
    const at = key(item);
    if (at === null) continue;
    const known = lists.get(at);
    if (known) known.push(item);
    else lists.set(at, [item]);
  }
  return lists;
}

/** Only a policy that overlaps updates has any, and an outside trainer orders its batches itself. */
function maxStalenessOf({ config }: RunSnapshot): number {
  const overlaps = dispatcherNamed(config.dispatcher.name)?.overlapsUpdates ?? false;
  return overlaps && config.stepSource === "planned" ? config.dispatcher.maxStaleness : 0;
}

function boundsOf({ config, runLimit }: RunSnapshot): Bounds {
  const { bounds, adaptive } = config.dispatcher;
  return adaptive && runLimit != null ? { ...bounds, run: Math.min(bounds.run, runLimit.limit) } : bounds;
}

export const isOpen = ({ state }: StepSnapshot): boolean => state === "gathering" || state === "updating";

/** A train step that Rolldeck itself updates: it alone has group policies, cuts and staleness. */
export const isPlannedTrain = ({ purpose, source }: StepSnapshot): boolean =>
  purpose === "train" && source === "planned";

/** A lease or timer that is not there, or not after now, no longer holds anybody back. */
export const isPast = (at: number | null, now: number): boolean => at === null || at <= now;
