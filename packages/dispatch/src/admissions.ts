/**
 * Who may start a stage now: the dispatcher's bounds, then the run's grants. Later stages come first, so that what is nearly
 * done gets done and gives its leases back.
 */
import { endingRule } from "@rolldeck/contracts/endings";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { Action, NewLease, ResourceCounts, RolloutSnapshot } from "@rolldeck/contracts/plan";
import type { Dispatcher } from "./dispatcher.ts";
import { type Facts, isInFlight, isPast } from "./facts.ts";
import { LeaseBudget } from "./lease-budget.ts";

const drainOrder: readonly Stage[] = ["evaluate", "run", "init"];

/** @param touched rollouts that another action of this plan moves */
export function admissions(
  facts: Facts,
  dispatcher: Dispatcher,
  grants: ResourceCounts,
  touched: ReadonlySet<string>,
): Action[] {
  const ready = readyByStage(facts, touched);
  const load = loadOf(facts);
  const budget = new LeaseBudget(grants, facts.snapshot.held, load.agentSandboxes);
  const { bounds } = facts.snapshot.config.dispatcher;
  const actions: Action[] = [];
  for (const stage of drainOrder) {
    for (const rollout of ready[stage]) {
      const needsSandbox = facts.snapshot.taskSandboxes[rollout.taskSet] !== "none";
      if (!dispatcher.mayAdmit(stage, needsSandbox, load, bounds)) continue;
      const inPlace = facts.snapshot.gradedInPlace?.[rollout.taskSet] ?? false;
      const leases = leasesOf(dispatcher, stage, { needsSandbox, inPlace }).filter(
        ({ resource }) => !rollout.holds.includes(resource),
      );
      if (!budget.take(leases)) continue;
      load.waiting[stage] -= 1;
      load.inFlight[stage] += 1;
      if (stage === "init" && needsSandbox) load.agentSandboxes += 1;
      actions.push({ do: "admit", rolloutId: rollout.rolloutId, attempt: rollout.attempt, stage, leases });
    }
  }
  return actions;
}

/** A sandbox that is graded in place stands for the agent's and the grading one: its lease goes on through both. */
function leasesOf(
  dispatcher: Dispatcher,
  stage: Stage,
  { needsSandbox, inPlace }: { readonly needsSandbox: boolean; readonly inPlace: boolean },
): readonly NewLease[] {
  const leases = dispatcher.leases(stage, needsSandbox);
  if (!inPlace) return leases;
  return leases.map((lease) => (lease.resource === "sandbox" ? { ...lease, until: "evaluate" } : lease));
}

/** Waiting rollouts that nothing but slots holds back: the oldest step first, then the longest waiting. */
function readyByStage(facts: Facts, touched: ReadonlySet<string>): Record<Stage, RolloutSnapshot[]> {
  const rank = new Map(
    facts.openSteps.filter(({ state }) => state === "gathering").map((step, at) => [step.stepId, at]),
  );
  const rankOf = ({ stepId }: RolloutSnapshot): number => rank.get(stepId) ?? 0;
  const ready: Record<Stage, RolloutSnapshot[]> = { init: [], run: [], evaluate: [] };
  for (const rollout of facts.unsettled) {
    if (touched.has(rollout.rolloutId) || !rank.has(rollout.stepId)) continue;
    if (mayStart(rollout, facts)) ready[rollout.stage].push(rollout);
  }
  for (const stage of stages) ready[stage].sort((a, b) => rankOf(a) - rankOf(b) || a.readyAt - b.readyAt);
  return ready;
}

function mayStart({ state, stage, ending, notBefore }: RolloutSnapshot, facts: Facts): boolean {
  if (state !== "waiting" || !isPast(notBefore, facts.snapshot.now)) return false;
  // Grading needs no model; the other two stages would only burn attempts while it is away.
  if (stage !== "evaluate" && !facts.modelReady) return false;
  return ending === null || endingRule(ending).graded;
}

function loadOf(facts: Facts) {
  const load = {
    waiting: { init: 0, run: 0, evaluate: 0 },
    inFlight: { init: 0, run: 0, evaluate: 0 },
    agentSandboxes: 0,
  };
  for (const rollout of facts.unsettled) {
    if (isInFlight(rollout)) load.inFlight[rollout.stage] += 1;
    else load.waiting[rollout.stage] += 1;
    if (rollout.stage !== "evaluate" && rollout.holds.includes("sandbox")) load.agentSandboxes += 1;
  }
  return load;
}
