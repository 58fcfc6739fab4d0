/**
 * Brings one run up to its `wake`: share the pools, read, plan, apply by compare-and-set, enqueue after the commit. Two
 * reconcilers of one run do no harm: the row that moved first wins and the other's action is refused.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { Action, Demand, RunSnapshot } from "@rolldeck/contracts/plan";
import { applyActions, type InstanceFacts } from "@rolldeck/db/reconcile/apply-actions";
import { readDemands, writeGrants } from "@rolldeck/db/reconcile/pools";
import { readSnapshot } from "@rolldeck/db/reconcile/read-snapshot";
import { moveRunFrom } from "@rolldeck/db/runs/move-run";
import { markHandled } from "@rolldeck/db/runs/wake";
import { plan } from "@rolldeck/dispatch/plan";
import { dispatcherNamed } from "@rolldeck/dispatch/registry";
import { share } from "@rolldeck/dispatch/share";
import { taskOf } from "../rollout-task.ts";
import { TaskSetFactsOf } from "../task-set-facts.ts";
import { costMetrics } from "../training/cost-metrics.ts";
import { writeDrivenMetrics } from "../training/driven-metrics.ts";
import { writeEvaluateMetrics } from "../training/evaluate-metrics.ts";
import type { WorkerContext } from "../worker-context.ts";

const maxRounds = 5;
/** From the start of one round to that of the next: a burst of edges costs one plan. */
const minRoundMs = 50;
/** Room in a pool that is full beside its grants: whoever makes some wakes the run, and this is for what nobody tells of. */
const roomLookMs = 2_000;
/** A run in another status only winds down, or waits: for that its tasks need not be there. */
const needsTasks: ReadonlySet<RunStatus> = new Set(["queued", "preparing", "running"]);

export async function reconcile(context: WorkerContext, runId: string, by: "queue" | "sweep"): Promise<void> {
  // The sweep is for runs that nobody brings on; one that this process is at already is no such run.
  if (by === "sweep" && context.reconciles.isHere(runId)) return;
  await context.reconciles.here(runId, (looks) => reconcileRounds(context, runId, by, looks));
}

async function reconcileRounds(
  context: WorkerContext,
  runId: string,
  by: "queue" | "sweep",
  looks: () => void,
): Promise<void> {
  let mayStartAt = 0;
  for (let round = 0; round < maxRounds; round++) {
    if (round > 0) await pause(Math.max(0, mayStartAt - performance.now()));
    mayStartAt = performance.now() + minRoundMs;
    const behind = await reconcileRound(context, runId, looks);
    context.measures.plans.inc({ by });
    if (!behind) return;
  }
  // Still behind after five rounds: give others their turn.
  context.requestReconcile(runId);
}

/** @returns whether another round is due: the run was woken meanwhile, or its actions call for a next plan. */
async function reconcileRound(context: WorkerContext, runId: string, looks: () => void): Promise<boolean> {
  const timed = context.measures.planSeconds.startTimer();
  await reconcilePools(context);
  // The wake is read with the snapshot: what rises after it is another round's business.
  const opened = new TaskSetFactsOf(context);
  const read = await readSnapshot(context.pool, runId, (config) => opened.all(config));
  if (read === null) return false;
  const { snapshot, grants, wake } = read;
  if (opened.trouble !== null && needsTasks.has(snapshot.status)) {
    context.log.warn({ runId, reason: opened.trouble }, "the run's tasks can't be opened");
    await moveRunFrom(context.pool, runId, { from: snapshot.status, to: "failed", reason: opened.trouble });
    return true;
  }
  const { actions, wakeAt } = plan(snapshot, grants);
  await beforeSteps(context, snapshot, actions);
  const { jobs, applied, refused, waits } = await applyActions(context.pool, snapshot, actions, instanceFacts(context));
  looks();
  // The rows are committed: a job that gets lost is delivered again when its row's lease is past, whatever the wake says.
  const [handled] = await Promise.all([
    markHandled(
      context.pool,
      runId,
      wake,
      waits ? Math.min(wakeAt ?? Number.POSITIVE_INFINITY, snapshot.now + roomLookMs) : wakeAt,
    ),
    jobs.length > 0 ? context.enqueue(jobs) : null,
  ]);
  timed();
  if (refused > 0) context.log.debug({ runId, applied, refused }, "actions refused: the rows had moved");
  // A timer that is not after the snapshot's own time asks for a next plan at once.
  return handled.wake !== wake || (!waits && wakeAt !== null && wakeAt <= snapshot.now);
}

/** How a pool is shared; quotas and reserve are the operator's. */
const shareOf: (
  size: number,
  demands: readonly Demand[],
  options: { readonly quotas?: ReadonlyMap<string, number>; readonly evaluationReserve?: number },
) => Map<string, number> = share;

/** Shares every pool among the runs that want it; whose grant rose is woken by the write. */
export async function reconcilePools(context: WorkerContext): Promise<void> {
  const sandbox = (name: string) => (Object.hasOwn(context.tasks, name) ? context.tasks[name]?.sandbox : "none");
  const demands = await readDemands(context.pool, {
    needsSandbox: (task) => sandbox(task) !== "none",
    holdsRunSlotFromInit: (name) =>
      dispatcherNamed(name)
        ?.leases("init", true)
        .some(({ resource }) => resource === "runSlot") ?? false,
  });
  const grants = demands.map(({ pool: { resource, size, evaluationReserve }, demands: wishes, quotas }) => ({
    resource,
    granted: shareOf(size, wishes, { quotas, evaluationReserve }),
  }));
  await writeGrants(context.pool, grants);
}

/** Points of a step without an update are written before it ends, so that no crash ends a step without them; twice is harmless. */
async function beforeSteps(context: WorkerContext, snapshot: RunSnapshot, actions: readonly Action[]): Promise<void> {
  for (const action of actions) {
    if (action.do !== "end-step" || action.to !== "done") continue;
    const step = snapshot.steps.find(({ stepId }) => stepId === action.stepId);
    if (step === undefined) continue;
    const cost = await costMetrics(context, snapshot);
    if (step.purpose === "evaluate") await writeEvaluateMetrics(context.pool, snapshot, step, cost);
    else if (step.source === "driven") await writeDrivenMetrics(context.pool, snapshot, step, cost);
  }
}

const instanceFacts = (context: WorkerContext): InstanceFacts => ({
  instanceId: async (config, group) => (await taskOf(context.openedTasks, { config, ...group })).instance.instanceId,
});
