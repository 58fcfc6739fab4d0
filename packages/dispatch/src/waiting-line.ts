/**
 * Who waits for which stage, and in which order: evaluations first, so that a checkpoint is measured in time, then the oldest
 * step, then as the policy says, then the longest waiting. What keeps a rollout out of the line whatever is free has its reason.
 */
import { endingRule } from "@rolldeck/contracts/endings";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { RolloutSnapshot } from "@rolldeck/contracts/plan";
import type { Candidate, Dispatcher } from "./dispatcher.ts";
import { hoursEndAt } from "./end-of-run.ts";
import { ExpectedTimes } from "./expected-time.ts";
import { type Facts, isPast } from "./facts.ts";
import { learnerVersion } from "./gather-ahead.ts";
import { isUntouched } from "./rollout-state.ts";
import type { WaitReason } from "./wait-reason.ts";

export interface WaitingLine {
  /** Those that only bounds and pools hold back, in their order. */
  readonly ready: Readonly<Record<Stage, readonly RolloutSnapshot[]>>;
  /** The other rollouts that wait, by id. */
  readonly waits: Map<string, WaitReason>;
}

/** @param touched rollouts that another action of this plan moves */
export function waitingLine(facts: Facts, dispatcher: Dispatcher, touched: ReadonlySet<string>): WaitingLine {
  const ranks = stepRanks(facts);
  const ready: Record<Stage, RolloutSnapshot[]> = { init: [], run: [], evaluate: [] };
  const waits = new Map<string, WaitReason>();
  for (const rollout of facts.unsettled) {
    if (rollout.state !== "waiting" || touched.has(rollout.rolloutId)) continue;
    const reason = ranks.has(rollout.stepId) ? heldBack(facts, rollout) : closed;
    if (reason === null) ready[rollout.stage].push(rollout);
    else waits.set(rollout.rolloutId, reason);
  }
  const order = orderOf(facts, dispatcher, ranks);
  for (const stage of stages) ready[stage] = order(ready[stage]);
  return { ready, waits };
}

const closed: WaitReason = { waitsFor: "step", detail: "its step takes no rollouts now" };

function stepRanks(facts: Facts): ReadonlyMap<string, number> {
  const gathering = facts.openSteps.filter(({ state }) => state === "gathering");
  const evaluationsFirst = [
    ...gathering.filter(({ purpose }) => purpose === "evaluate"),
    ...gathering.filter(({ purpose }) => purpose === "train"),
  ];
  return new Map(evaluationsFirst.map(({ stepId }, at) => [stepId, at]));
}

/** What keeps it out of the line, null = nothing. */
function heldBack(facts: Facts, rollout: RolloutSnapshot): WaitReason | null {
  const { now, draining } = facts.snapshot;
  const { stage, notBefore, ending } = rollout;
  if (rollout.held) return { waitsFor: "held", detail: "it is held" };
  if (facts.groupOf(rollout)?.row?.held) return { waitsFor: "held", detail: "its group is held" };
  if (draining && isUntouched(rollout)) return { waitsFor: "draining", detail: "the run starts nothing new" };
  if (notBefore !== null && !isPast(notBefore, now)) {
    return { waitsFor: "back-off", detail: "its last try failed; the next is due later", until: notBefore };
  }
  if (ending !== null && !endingRule(ending).graded) return { waitsFor: "step", detail: "its stage failed" };
  // Grading needs no model; the other two stages would only burn attempts while it is away.
  if (stage !== "evaluate" && !facts.modelReady) return { waitsFor: "model", detail: "the model does not serve" };
  if (stage === "run" && isTooOld(facts, rollout)) {
    return { waitsFor: "model", detail: "the version that serves is too old for the next update" };
  }
  return null;
}

/** What began now would lie too far behind the next update: the version under way is worth waiting for. */
function isTooOld(facts: Facts, rollout: RolloutSnapshot): boolean {
  const { maxStaleness, snapshot } = facts;
  if (maxStaleness === 0 || snapshot.servingVersion === null || facts.stepOf(rollout)?.purpose !== "train")
    return false;
  return learnerVersion(facts) - snapshot.servingVersion > maxStaleness;
}

function orderOf(facts: Facts, dispatcher: Dispatcher, ranks: ReadonlyMap<string, number>) {
  const compare = dispatcher.compare?.bind(dispatcher) ?? (() => 0);
  const expected = new ExpectedTimes(facts.snapshot);
  const hoursEnd = hoursEndAt(facts.snapshot) ?? Number.POSITIVE_INFINITY;
  const candidateOf = (rollout: RolloutSnapshot): Candidate & { readonly rank: number } => {
    const remainingMs = expected.remaining(rollout);
    return {
      rollout,
      rank: ranks.get(rollout.stepId) ?? 0,
      remainingMs,
      late: facts.snapshot.now + (remainingMs ?? 0) > hoursEnd,
      groupVersion: facts.groupOf(rollout)?.firstVersion ?? null,
    };
  };
  return (rollouts: readonly RolloutSnapshot[]): RolloutSnapshot[] =>
    rollouts
      .map(candidateOf)
      .sort((a, b) => a.rank - b.rank || compare(a, b) || a.rollout.readyAt - b.rollout.readyAt)
      .map(({ rollout }) => rollout);
}
