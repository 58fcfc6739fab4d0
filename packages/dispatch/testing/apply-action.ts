/**
 * Applies one action as the database does, and refuses loudly what the database would refuse quietly: in this world nothing
 * moves between the snapshot and the plan, so a refused action is the planner's fault. It shares nothing with the simulator's
 * ApplyToRows on purpose: two readings of what the database does find what one of them gets wrong, and that one is to be fast.
 */
import { strict as assert } from "node:assert";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { hasEdge, rolloutEdges, runEdges, stepEdges } from "@rolldeck/contracts/lifecycle";
import type { Action } from "@rolldeck/contracts/plan";
import { type ApplyContext, stepNamed } from "./apply-context.ts";
import { addGroups, beginUpdate, createStep, setGroupAside } from "./apply-to-steps.ts";
import { settle } from "./settle.ts";
import type { RolloutRow } from "./world-rows.ts";
import { heldBy, usedOf } from "./world-rows.ts";

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
      beginUpdate(context, action);
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
      addGroups(context, action);
      return;
    case "set-aside":
      setGroupAside(context, action);
      return;
    case "set-run-limit":
      assert.equal(run.runLimit?.limit ?? null, action.from);
      run.runLimit = action.to === null ? null : { limit: action.to, since: now };
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
        firstVersion: null,
      });
      backToLine(rollout, now, action.notBefore);
      return;
    case "regrade":
      assert.equal(rollout.stage, "evaluate");
      rollout.leases = rollout.leases.filter(({ until }) => until !== "evaluate");
      backToLine(rollout, now, action.notBefore);
      return;
    case "settle":
      settle(rollout, { outcome: action.outcome, reward: null, at: now });
      rollout.ending = action.ending;
  }
}

function backToLine(rollout: RolloutRow, now: number, notBefore: number): void {
  const ending = rollout.runEnding;
  Object.assign(rollout, { state: "waiting", ending, reason: null, notBefore, readyAt: now });
  Object.assign(rollout, { leaseUntil: null, alive: false, stageStartedAt: null });
}

function admit(context: ApplyContext, rollout: RolloutRow, action: Extract<Action, { do: "admit" }>): void {
  const { run, pools, grants, now } = context;
  assert.equal(rollout.state, "waiting");
  assert.equal(run.status, "running");
  assert.equal(rollout.stage, action.stage);
  const step = stepNamed(run, rollout.stepId);
  assert.equal(step.state, "gathering");
  const group = run.groups.find(({ groupId }) => groupId === rollout.groupId);
  assert.ok(!rollout.held && !group?.held, "what is held is not admitted");
  assert.ok(group?.setAside === null, "its group counts");
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
