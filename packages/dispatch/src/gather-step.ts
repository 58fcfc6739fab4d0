/**
 * When a train step that is updated alone has gathered, and which of its groups are trained. Invariants: an update begins only
 * with something to train; groups beyond those the step needs are set aside before it; what is replaced is waited for.
 */
import { endingRule } from "@rolldeck/contracts/endings";
import type { Action, RolloutSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";
import type { Facts } from "./facts.ts";
import { byAge, type Group } from "./group-accounting.ts";
import { isScored } from "./rollout-state.ts";
import { asFlat, asNotNeeded, replacing, type SetAside } from "./set-aside.ts";

export interface Gathered {
  readonly aside: readonly SetAside[];
  /** The step's own edges, and what is to be said about them. */
  readonly moves: readonly Action[];
}
export const nothing: Gathered = { aside: [], moves: [] };

export function gatherStep(facts: Facts, step: StepSnapshot): Gathered {
  const { due, now } = replacing(facts, step);
  if (due.length + now.length > 0) return { aside: now.map(asFlat), moves: [] };
  const needed = facts.snapshot.config.algorithm.groupsPerStep;
  const live = facts.liveGroupsOf(step);
  const fit = live.filter((group) => group.fit).sort(byAge);
  const enough = fit.length >= needed;
  if (!enough && live.some(({ complete }) => !complete)) return nothing;
  const chosen = fit.slice(0, needed);
  // Fewer than needed, and nothing more to come: what can't be trained stays with the step, for its counts.
  const surplus = enough ? live.filter((group) => !chosen.includes(group)) : [];
  const { trained, flat } = withoutFlat(facts, chosen);
  const aside = [...surplus.map(asNotNeeded), ...flat.map(asFlat)];
  if (trained.length === 0) return { aside, moves: withoutUpdate(step, whyNothing(facts, step)) };
  return facts.modelReady ? { aside, moves: [{ do: "begin-update", stepId: step.stepId }] } : nothing;
}

/** Groups of equal rewards are kept unless the config says otherwise. */
export function withoutFlat(facts: Facts, chosen: readonly Group[]): { trained: Group[]; flat: Group[] } {
  if (facts.snapshot.config.dispatcher.zeroVariance.mode === "keep") return { trained: [...chosen], flat: [] };
  return { trained: chosen.filter((group) => !group.flat), flat: chosen.filter((group) => group.flat) };
}

/** The step ends failed, with its reason on the run's page. */
export function withoutUpdate({ stepId, step, state, purpose }: StepSnapshot, reason: string): Action[] {
  const what = purpose === "train" ? `Step ${step} made no update` : `Version ${step} was not measured`;
  return [
    { do: "end-step", stepId, from: state, to: "failed", reason },
    { do: "note", level: "warning", message: `${what}: ${reason}` },
  ];
}

/** Why a step has nothing to train, with the counts of how its rollouts ended. */
export function whyNothing(facts: Facts, step: StepSnapshot): string {
  const rollouts = facts.rolloutsOf(step);
  const counts = endingCounts(rollouts);
  const live = facts.liveGroupsOf(step);
  const aside = facts.asideGroupsOf(step);
  if (live.length === 0 && aside.length > 0 && !aside.some(({ flat }) => flat))
    return `every group was set aside: ${counts}`;
  if (!rollouts.some(isScored)) return `no rollout was scored: ${counts}`;
  const flat = [...live, ...aside].filter((group) => group.fit && group.flat).length;
  if (flat === 0) return `every group was dropped: ${counts}`;
  return `no variance: the rewards of ${flat === 1 ? "its one group" : `each of ${flat} groups`} were equal: ${counts}`;
}

/** `12 × worker lost, 4 × verifier error`, most frequent first. */
export function endingCounts(rollouts: readonly RolloutSnapshot[]): string {
  const counts = new Map<string, number>();
  for (const { ending } of rollouts) {
    const label = ending === null ? "no ending" : endingRule(ending).label;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  if (counts.size === 0) return "it had no rollouts";
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([label, count]) => `${count} × ${label}`)
    .join(", ");
}
