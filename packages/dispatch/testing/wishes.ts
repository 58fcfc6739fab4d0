/** What a run of the little world wishes for of each pool, on top of what it holds. */
import { type Resource, type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import { plan } from "../src/plan.ts";
import { heldBy, type RunRow, snapshotOf } from "./world-rows.ts";

export interface Wish {
  readonly more: number;
  /** When the oldest rollout behind it came to wait. */
  readonly since: number;
}
export type Wishes = Partial<Record<Resource, Wish>>;

/** What it could start now if it had all that is free. */
export function exactWishes(run: RunRow, free: ResourceCounts, now: number): Wishes {
  const reach = heldBy(run);
  for (const resource of resources) reach[resource] += free[resource];
  const wishes: Wishes = {};
  for (const action of plan(snapshotOf(run, now), reach).actions) {
    if (action.do !== "admit") continue;
    const rollout = run.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId);
    for (const { resource } of action.leases) add(wishes, resource, rollout?.readyAt ?? now);
  }
  return wishes;
}

/** By who waits at which stage, whatever the policy or the other pools allow. */
export function coarseWishes(run: RunRow): Wishes {
  const wishes: Wishes = {};
  if (run.status !== "running") return wishes;
  for (const { state, stage, readyAt } of run.rollouts) {
    if (state !== "waiting") continue;
    add(wishes, "sandbox", readyAt);
    if (stage === "init") add(wishes, "initSlot", readyAt);
    if (stage === "evaluate") add(wishes, "gradeSlot", readyAt);
    else add(wishes, "runSlot", readyAt);
  }
  return wishes;
}

function add(wishes: Wishes, resource: Resource, readyAt: number): void {
  const { more, since } = wishes[resource] ?? { more: 0, since: readyAt };
  wishes[resource] = { more: more + 1, since: Math.min(since, readyAt) };
}
