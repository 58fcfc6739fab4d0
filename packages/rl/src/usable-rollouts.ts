/** Of the rollouts that came to an update, how many teach anything, and why the others do not: for the run's log. */
import { maskReasons } from "@rolldeck/contracts/endings";
import { maskWords } from "@rolldeck/contracts/mask-words";
import type { UpdateStats } from "./build-update.ts";

export type UsableRollouts = Pick<UpdateStats, "rollouts" | "usableRollouts" | "droppedRollouts" | "untrainedRollouts">;

/** Null where every rollout is usable. */
export function whyNotUsable(step: number, stats: UsableRollouts): string | null {
  const { rollouts, usableRollouts, droppedRollouts, untrainedRollouts } = stats;
  if (usableRollouts === rollouts) return null;
  const reasons: [count: number, why: string][] = maskReasons.map((reason) => [
    untrainedRollouts[reason] ?? 0,
    maskWords[reason],
  ]);
  reasons.push([droppedRollouts, "its group is not trained, because rollouts of it have no reward"]);
  const told = reasons.reduce((sum, [count]) => sum + count, usableRollouts);
  reasons.push([rollouts - told, "nothing was sampled"]);
  const why = reasons.filter(([count]) => count > 0).map(([count, words]) => `${count} × ${words}`);
  return `Step ${step}: of ${rollouts} rollouts ${usableRollouts} are usable; ${why.join(", ")}.`;
}
