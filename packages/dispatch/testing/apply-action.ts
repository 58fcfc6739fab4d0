/**
 * Applies one action as the database does, and refuses loudly what the database would refuse quietly: in this world nothing
 * moves between the snapshot and the plan, so a refused action is the planner's fault.
 */
import { strict as assert } from "node:assert";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { hasEdge, rolloutEdges, runEdges, stepEdges } from "@rolldeck/contracts/lifecycle";
import type { Action, ResourceCounts } from "@rolldeck/contracts/plan";
import { isScored } from "../src/facts.ts";
import type { RolloutRow, RunRow, StepRow } from "./world-rows.ts";
import { heldBy, usedOf } from "./world-rows.ts";

export interface ApplyContext {
  readonly now: number;
  readonly run: RunRow;
  readonly runs: readonly RunRow[];
  readonly pools: ResourceCounts;
  readonly grants: ResourceCounts;
  /** Jobs that the action enqueues. */
  deliverStage(rollout: RolloutRow): void;
  deliverPrepare(): void;
  deliverUpdate(step: StepRow): void;
}

export function applyAction(context: ApplyContext, action: Action): void {
  const { run, now } = context;
  switch (action.do) {
    case "move-run":
      assert.equal(run.status, action.from);
      assert.ok(hasEdge(runEdges, action.from, action.to), `run ${action.from} → ${action.to}`);
      run.status = action.to;
      run.endReason = action.reason;
      run.startedAt ??= now;
      return;
    case "prepare":
      assert.ok(!run.prepareAlive && (run.prepareLeaseUntil ?? 0) <= now, "prepare is on its way already");
      run.prepareLeaseUntil = now + leaseMs;
      context.deliverPrepare();
      return;
    case "create-step":
      createStep(context, action);
      return;
    case "begin-update":
      beginUpdate(context, stepNamed(run, action.stepId));
      return;
    case "redeliver-update": {
      const step = stepNamed(run, action.stepId);
      assert.ok(step.state === "updating" && !step.alive && (step.updateLeaseUntil ?? 0) <= now);
      step.updateLeaseUntil = now + leaseMs;
      context.deliverUpdate(step);
      return;
    }
    case "end-step": {
      const step = stepNamed(run, action.stepId);
      assert.equal(step.state, action.from);
      assert.ok(hasEdge(stepEdges, action.from, action.to), `step ${action.from} → ${action.to}`);
      const byUpdate = step.purpose === "train" && step.source === "planned" && action.to === "done";
      assert.ok(!byUpdate, "only an update makes a planned train step done");
      step.state = action.to;
      step.alive = false;
      return;
    }
    case "note":
      run.notes.push(action.message);
      return;
    case "add-groups":
    case "set-aside":
    case "set-run-limit":
      assert.fail(`this world has no ${action.do} yet`);
      return;
    default:
      moveRollout(context, action);
      return;
  }
}

function moveRollout(
  context: ApplyContext,
  action: Extract<Action, { do: "admit" | "redeliver" | "retry" | "regrade" | "settle" }>,
): void {
  const { now } = context;
  const rollout = context.run.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId);
  assert.ok(rollout, "the rollout exists");
  assert.equal(rollout.attempt, action.attempt);
  const to = { admit: "queued", redeliver: "queued", retry: "waiting", regrade: "waiting", settle: "settled" } as const;
  const target = to[action.do];
  const stays = rollout.state === "waiting" && target === "waiting";
  assert.ok(stays || hasEdge(rolloutEdges, rollout.state, target), `rollout ${rollout.state} → ${target}`);
  switch (action.do) {
    case "admit":
      admit(context, rollout, action);
      return;
    case "redeliver":
      assert.equal(rollout.stage, action.stage);
      assert.ok(!rollout.alive && (rollout.leaseUntil ?? 0) <= now, "its lease is not past");
      rollout.leaseUntil = now + leaseMs;
      rollout.state = "queued";
      context.deliverStage(rollout);
      return;
    case "retry":
      Object.assign(rollout, {
        attempt: rollout.attempt + 1,
        stage: "init",
        deliveries: 0,
        leases: [],
        runEnding: null,
      });
      backToLine(rollout, now, action.notBefore);
      return;
    case "regrade":
      assert.equal(rollout.stage, "evaluate");
      rollout.leases = rollout.leases.filter(({ until }) => until !== "evaluate");
      backToLine(rollout, now, action.notBefore);
      return;
    case "settle":
      settle(rollout, action.outcome, null);
      rollout.ending = action.ending;
  }
}

function backToLine(rollout: RolloutRow, now: number, notBefore: number): void {
  const ending = rollout.runEnding;
  Object.assign(rollout, { state: "waiting", ending, reason: null, notBefore, readyAt: now });
  Object.assign(rollout, { leaseUntil: null, alive: false, stageStartedAt: null });
}

export function settle(rollout: RolloutRow, outcome: RolloutRow["outcome"], reward: number | null): void {
  Object.assign(rollout, { state: "settled", outcome, reward, leases: [], leaseUntil: null, alive: false });
  rollout.settledTimes += 1;
}

function admit(context: ApplyContext, rollout: RolloutRow, action: Extract<Action, { do: "admit" }>): void {
  const { run, pools, grants, now } = context;
  assert.equal(rollout.state, "waiting");
  assert.equal(run.status, "running");
  assert.equal(rollout.stage, action.stage);
  for (const { resource, until } of action.leases) {
    assert.ok(!rollout.leases.some((lease) => lease.resource === resource), `holds ${resource} already`);
    assert.ok(usedOf(context.runs)[resource] < pools[resource], `pool ${resource} is full`);
    assert.ok(heldBy(run)[resource] < grants[resource], `grant of ${resource} is spent`);
    rollout.leases.push({ resource, until });
  }
  rollout.state = "queued";
  rollout.leaseUntil = now + leaseMs;
  context.deliverStage(rollout);
}

function createStep({ run, now }: ApplyContext, action: Extract<Action, { do: "create-step" }>): void {
  const twin = run.steps.some(({ purpose, step }) => purpose === action.purpose && step === action.step);
  assert.ok(!twin, `${action.purpose} step ${action.step} is there already`);
  const open = run.steps.some(({ state }) => state === "gathering" || state === "updating");
  assert.ok(action.source === "driven" || !open, "a planned step starts alone");
  assert.ok(action.groups.length > 0 && action.groupSize > 0);
  assert.ok(
    action.groups.every(({ split }) => split === action.purpose),
    "splits never mix",
  );
  const { purpose, step, source } = action;
  const stepId = `${run.runId}-${purpose}-${step}`;
  const fresh = { updateLeaseUntil: null, updateFailures: 0, claim: 0, alive: false, trained: false } as const;
  run.steps.push({ stepId, purpose, step, source, state: "gathering", createdAt: now, ...fresh });
  for (const [position, { taskSet }] of action.groups.entries()) {
    for (let sample = 0; sample < action.groupSize; sample++) {
      run.rollouts.push(newRollout(stepId, `${stepId}-${position}`, { taskSet, sample, purpose, readyAt: now }));
    }
  }
  run.batchRequests = run.batchRequests.filter(({ batchId }) => batchId !== action.batchId);
}

const newRollout = (
  stepId: string,
  groupId: string,
  own: Pick<RolloutRow, "taskSet" | "sample" | "purpose" | "readyAt">,
): RolloutRow => ({
  ...own,
  rolloutId: `${groupId}-${own.sample}`,
  stepId,
  groupId,
  attempt: 1,
  stage: "init",
  state: "waiting",
  claim: 0,
  deliveries: 0,
  leaseUntil: null,
  notBefore: null,
  stageStartedAt: null,
  ending: null,
  reason: null,
  outcome: null,
  reward: null,
  infrastructureFailures: 0,
  evaluateFailures: 0,
  leases: [],
  alive: false,
  runEnding: null,
  settledTimes: 0,
});

function beginUpdate(context: ApplyContext, step: StepRow): void {
  const { run, now } = context;
  assert.equal(step.state, "gathering");
  assert.equal(step.purpose, "train");
  assert.equal(step.source, "planned");
  const rollouts = run.rollouts.filter(({ stepId }) => stepId === step.stepId);
  assert.ok(
    rollouts.every(({ state }) => state === "settled"),
    "every rollout is settled before the update",
  );
  assert.ok(
    rollouts.some((rollout) => isScored({ ...rollout, holds: [] })),
    "an update has a scored rollout",
  );
  step.state = "updating";
  step.updateLeaseUntil = now + leaseMs;
  context.deliverUpdate(step);
}

function stepNamed(run: RunRow, stepId: string): StepRow {
  const step = run.steps.find((row) => row.stepId === stepId);
  assert.ok(step, `step ${stepId} exists`);
  return step;
}
