/**
 * What became of each group: how many of its rollouts are scored, whether it can be trained, how old it is. Invariants: a group is
 * complete as soon as as many are scored as it needs, or none is left unsettled; what was cut because others were scored first
 * is no loss.
 */
import type { GroupSnapshot, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { isScored } from "./rollout-state.ts";

export interface Group {
  readonly groupId: string;
  readonly stepId: string;
  /** What the database keeps of the group itself; null where it tells nothing. */
  readonly row: GroupSnapshot | null;
  readonly rollouts: readonly RolloutSnapshot[];
  readonly scored: number;
  /** Settled without a score, and not because it was not needed. */
  readonly lost: number;
  readonly complete: boolean;
  /** The group policy gives it up: too many of its rollouts were lost. */
  readonly dropped: boolean;
  /** Complete, and it has something to train. */
  readonly fit: boolean;
  /** Its rewards are all equal: by them no rollout is better than another. */
  readonly flat: boolean;
  /** Oldest version any of its rollouts began with; null = none has begun. */
  readonly firstVersion: number | null;
  /** When as many were scored as it needs (or the last was settled), 0 while it is not complete. */
  readonly completedAt: number;
}

/** Groups in the order of the snapshot's rollouts. */
export function groupsOf(snapshot: RunSnapshot): ReadonlyMap<string, Group> {
  const rows = new Map((snapshot.groups ?? []).map((row) => [row.groupId, row]));
  const train = new Map(
    snapshot.steps.filter(({ purpose }) => purpose === "train").map(({ stepId, source }) => [stepId, source]),
  );
  const members = new Map<string, RolloutSnapshot[]>();
  for (const rollout of snapshot.rollouts) {
    const known = members.get(rollout.groupId);
    if (known) known.push(rollout);
    else members.set(rollout.groupId, [rollout]);
  }
  const groups = new Map<string, Group>();
  for (const [groupId, rollouts] of members) {
    const stepId = rollouts[0]?.stepId ?? "";
    groups.set(groupId, groupOf(snapshot, { groupId, stepId, row: rows.get(groupId) ?? null, rollouts }, train));
  }
  return groups;
}

function groupOf(
  { config }: RunSnapshot,
  own: Pick<Group, "groupId" | "stepId" | "row" | "rollouts">,
  train: ReadonlyMap<string, "planned" | "driven">,
): Group {
  const { algorithm, dispatcher } = config;
  const isPlanned = train.get(own.stepId) === "planned";
  const { scored, lost, unsettled, firstVersion, equal } = count(own.rollouts);
  const needed = isPlanned ? algorithm.groupSize : own.rollouts.length;
  const complete = unsettled === 0 || scored >= needed;
  const spare = isPlanned ? dispatcher.overSample.rollouts : 0;
  const dropped = train.has(own.stepId) && algorithm.groupPolicy === "drop-group" && lost > spare;
  return {
    groupId: own.groupId,
    stepId: own.stepId,
    row: own.row,
    rollouts: own.rollouts,
    scored,
    lost,
    complete,
    dropped,
    fit: complete && scored > 0 && !dropped,
    flat: algorithm.groupSize > 1 && scored > 0 && equal,
    firstVersion,
    completedAt: complete ? completedAt(own.rollouts, needed) : 0,
  };
}

/** One pass: this is asked of every rollout of every plan. */
function count(rollouts: readonly RolloutSnapshot[]) {
  const counts = { scored: 0, lost: 0, unsettled: 0, equal: true, firstVersion: null as number | null };
  let reward: number | null = null;
  for (const rollout of rollouts) {
    const version = rollout.firstVersion ?? null;
    if (version !== null && version < (counts.firstVersion ?? Number.POSITIVE_INFINITY)) counts.firstVersion = version;
    if (rollout.state !== "settled") counts.unsettled += 1;
    else if (isScored(rollout)) {
      counts.scored += 1;
      if (reward !== null && rollout.reward !== reward) counts.equal = false;
      reward = rollout.reward;
    } else if (rollout.ending !== "not_needed") counts.lost += 1;
  }
  return counts;
}

function completedAt(rollouts: readonly RolloutSnapshot[], needed: number): number {
  const times = rollouts
    .filter(isScored)
    .map(({ settledAt }) => settledAt ?? 0)
    .sort((a, b) => a - b);
  return times[Math.min(needed, times.length) - 1] ?? 0;
}

/** Which of several complete groups are trained first: the oldest version, then who was complete first. */
export const byAge = (a: Group, b: Group): number =>
  (a.firstVersion ?? Number.MAX_SAFE_INTEGER) - (b.firstVersion ?? Number.MAX_SAFE_INTEGER) ||
  a.completedAt - b.completedAt;

/** Does not count to its step any more. */
export const isSetAside = ({ row }: Group): boolean => (row?.setAside ?? null) !== null;
