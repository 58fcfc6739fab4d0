/**
 * Why rollouts wait, for the run's page. Invariant: it is read off the very plan that admits, so it can't disagree with it:
 * exactly the rollouts that wait, and that the plan neither admits nor moves otherwise, have a reason.
 */
import type { WaitCause } from "@rolldeck/contracts/api/schedule";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { ResourceCounts, RunSnapshot } from "@rolldeck/contracts/plan";
import { planWithWaits } from "./plan.ts";
import type { WaitReason } from "./wait-reason.ts";

/** @returns the reason of each rollout that waits, by its id */
export function explain(snapshot: RunSnapshot, grants: ResourceCounts): ReadonlyMap<string, WaitReason> {
  const { waits, actions } = planWithWaits(snapshot, grants);
  if (waits !== null) return waits;
  const detail = snapshot.status === "running" ? "the run comes to its end" : `the run is ${snapshot.status}`;
  const moved = new Set(actions.flatMap((action) => ("rolloutId" in action ? [action.rolloutId] : [])));
  const waiting = snapshot.rollouts.filter(({ state, rolloutId }) => state === "waiting" && !moved.has(rolloutId));
  return new Map(waiting.map(({ rolloutId }) => [rolloutId, { waitsFor: "run", detail }]));
}

export interface StageWait {
  readonly waitsFor: WaitCause;
  readonly rollouts: number;
  /** What the first of them in the snapshot is told. */
  readonly detail: string;
}

/** What each stage's line waits for, most frequent first. */
export function explainStages(snapshot: RunSnapshot, grants: ResourceCounts): Readonly<Record<Stage, StageWait[]>> {
  const reasons = explain(snapshot, grants);
  const of = (stage: Stage): StageWait[] => {
    const waits = new Map<WaitCause, StageWait>();
    for (const rollout of snapshot.rollouts) {
      const reason = rollout.stage === stage ? reasons.get(rollout.rolloutId) : undefined;
      if (reason === undefined) continue;
      const { waitsFor, detail } = reason;
      waits.set(waitsFor, {
        detail,
        ...waits.get(waitsFor),
        waitsFor,
        rollouts: (waits.get(waitsFor)?.rollouts ?? 0) + 1,
      });
    }
    return [...waits.values()].sort((a, b) => b.rollouts - a.rollouts);
  };
  const [init, run, evaluate] = stages.map(of);
  return { init: init ?? [], run: run ?? [], evaluate: evaluate ?? [] };
}
