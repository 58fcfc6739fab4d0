/**
 * A step of which no rollout could have its sandbox: the next step would ask for the same ones and end the same way, so the run ends
 * with it. Its reason is what the sandboxes' runtime said, which names the image and what to do.
 */
import type { Action, RolloutSnapshot, StepSnapshot } from "@rolldeck/contracts/plan";
import { windDown } from "./end-of-run.ts";
import type { Facts } from "./facts.ts";

/** @param moves of steps that have gathered @returns null where no step ends so; else all that is left to do */
export function endAtRefusedStep(facts: Facts, moves: readonly Action[]): Action[] | null {
  const step = facts.openSteps.find((open) => isLast(facts, open, moves));
  if (step === undefined) return null;
  const refused = facts.rolloutsOf(step).filter(isRefused);
  const what = step.purpose === "train" ? `step ${step.step}` : `the evaluation of version ${step.step}`;
  const reason = `no sandbox could be had for any rollout of ${what}: ${commonest(refused)}`;
  const own = moves.filter((move) => move.do === "note" || (move.do === "end-step" && move.stepId === step.stepId));
  return [
    ...own,
    ...windDown(facts, reason, step),
    { do: "move-run", from: facts.snapshot.status, to: "failed", reason },
  ];
}

/** A training run goes on after an evaluation without a score, as after any other; a trainer outside decides for itself. */
function isLast(facts: Facts, step: StepSnapshot, moves: readonly Action[]): boolean {
  const counts = step.source === "planned" && (step.purpose === "train" || facts.snapshot.config.kind === "evaluate");
  const fails = moves.some((move) => move.do === "end-step" && move.stepId === step.stepId && move.to === "failed");
  if (!counts || !fails) return false;
  // One that was cancelled, by a person or with its group, says nothing of sandboxes.
  const settled = facts.rolloutsOf(step).filter(({ state, outcome }) => state === "settled" && outcome !== "cancelled");
  return settled.length > 0 && settled.every(isRefused);
}

const isRefused = ({ state, ending }: RolloutSnapshot): boolean => state === "settled" && ending === "sandbox_refused";

/** What most of them were told. */
function commonest(rollouts: readonly RolloutSnapshot[]): string {
  const counts = new Map<string, number>();
  for (const { reason } of rollouts) if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first?.[0] ?? "its runtime gave no reason";
}
