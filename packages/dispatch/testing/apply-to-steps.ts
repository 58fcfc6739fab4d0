/** Actions on steps and groups, as the database applies them; loud where it would refuse quietly. */
import { strict as assert } from "node:assert";
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { Action, NewGroup } from "@rolldeck/contracts/plan";
import { drawGroups } from "../src/draw-groups.ts";
import { isOpen } from "../src/facts.ts";
import { isScored } from "../src/rollout-state.ts";
import { type ApplyContext, stepNamed } from "./apply-context.ts";
import { buildRollout } from "./build-snapshot.ts";
import { settle } from "./settle.ts";
import type { RolloutRow, RunRow, StepRow } from "./world-rows.ts";

type Of<Do extends Action["do"]> = Extract<Action, { do: Do }>;
const fresh = {
  updateLeaseUntil: null,
  updateFailures: 0,
  claim: 0,
  alive: false,
  trained: false,
  staleness: 0,
} as const;

export function createStep(context: ApplyContext, action: Of<"create-step">): void {
  const { run, now } = context;
  const { purpose, step, source } = action;
  assert.ok(!run.draining, "a draining run starts no step");
  assert.ok(!twin(run, purpose, step), `${purpose} step ${step} is there already`);
  const open = run.steps.filter(isOpen);
  const overlaps = run.config.dispatcher.name === "async" && run.config.dispatcher.maxStaleness > 0;
  assert.ok(action.source === "driven" || overlaps || open.length === 0, "a planned step starts alone");
  const isAfterCancelled = run.steps.some((other) => other.step === step - 1 && other.state === "cancelled");
  assert.ok(
    action.source === "driven" ||
      open.every((other) => other.purpose !== purpose || (other.state === "updating" && isAfterCancelled)),
    "one of each purpose, but for the one in the place of a step that was cancelled",
  );
  assert.ok(action.groups.length > 0 && action.groupSize > 0);
  assert.ok(
    action.groups.every(({ split }) => split === action.purpose),
    "splits never mix",
  );
  const stepId = `${run.runId}-${purpose}-${step}`;
  run.steps.push({ stepId, purpose, step, source, state: "gathering", createdAt: now, ...fresh });
  if (purpose === "train" && source === "planned") checkDrawn(run, action.groups);
  putGroups(context, stepId, action);
  run.batchRequests = run.batchRequests.filter(({ batchId }) => batchId !== action.batchId);
}

const twin = (run: RunRow, purpose: string, step: number): boolean =>
  run.steps.some((other) => other.purpose === purpose && other.step === step);

/** The k-th train group drawn is the k-th of the run's order. */
function checkDrawn(run: RunRow, groups: readonly (NewGroup & { replaces?: string | null })[]): void {
  const due = drawGroups(run, run.groupsDrawn, groups.length);
  for (const [at, { taskSet, split, instanceIndex, replaces = null }] of groups.entries()) {
    const stale = run.groups.find(({ groupId, setAside }) => groupId === replaces && setAside === "stale");
    assert.deepEqual({ taskSet, split, instanceIndex }, stale ? stale.instance : due[at], "instances in their order");
  }
}

function putGroups(
  { run, now }: ApplyContext,
  stepId: string,
  { groups, groupSize }: { groups: readonly (NewGroup & { replaces?: string | null })[]; groupSize: number },
): void {
  const step = stepNamed(run, stepId);
  for (const { replaces = null, ...instance } of groups) {
    const groupId = `${run.runId}-group-${run.groups.length}`;
    run.groups.push({ groupId, stepId, instance, setAside: null, replaces, expectedMs: null, held: false });
    for (let sample = 0; sample < groupSize; sample++) {
      const own = { taskSet: instance.taskSet, sample, purpose: step.purpose, readyAt: now };
      run.rollouts.push(newRollout(stepId, groupId, own));
    }
  }
  if (step.purpose === "train" && step.source === "planned") run.groupsDrawn += groups.length;
}

export function addGroups(context: ApplyContext, action: Of<"add-groups">): void {
  const { run } = context;
  const step = stepNamed(run, action.stepId);
  assert.ok(!run.draining, "a draining run starts no group");
  assert.equal(step.state, "gathering");
  assert.equal(action.drawn, run.groupsDrawn);
  assert.ok(action.groups.length > 0);
  for (const { replaces } of action.groups) {
    if (replaces === null) continue;
    assert.ok(run.groups.some((group) => group.groupId === replaces && group.setAside !== null));
    assert.ok(!run.groups.some((group) => group.replaces === replaces), "replaced once");
  }
  checkDrawn(run, action.groups);
  putGroups(context, action.stepId, action);
}

export function setGroupAside({ run, now }: ApplyContext, action: Of<"set-aside">): void {
  const group = run.groups.find(({ groupId }) => groupId === action.groupId);
  assert.ok(group && group.setAside === null && group.stepId === action.stepId, "it counts to this step");
  assert.equal(stepNamed(run, action.stepId).state, "gathering");
  group.setAside = action.as;
  for (const rollout of run.rollouts.filter(({ groupId }) => groupId === action.groupId)) {
    if (rollout.state === "settled") continue;
    settle(rollout, { outcome: "cancelled", reward: null, at: now });
    rollout.ending = action.as === "stale" ? "stale" : action.as === "cancelled" ? "cancelled" : "not_needed";
  }
}

export function beginUpdate(context: ApplyContext, action: Of<"begin-update">): void {
  const { run, now } = context;
  const step = stepNamed(run, action.stepId);
  assert.equal(step.state, "gathering");
  assert.equal(step.purpose, "train");
  assert.equal(step.source, "planned");
  assert.ok(
    run.steps.every(({ state }) => state !== "updating"),
    "one update at a time",
  );
  if (action.leave !== undefined) leaveGroups(context, step, action.leave);
  const rollouts = trainable(run, step);
  assert.ok(
    run.rollouts.every(({ stepId, state }) => stepId !== step.stepId || state === "settled"),
    "every rollout is settled before the update",
  );
  assert.ok(
    rollouts.some((rollout) => isScored({ ...rollout, holds: [] })),
    "an update has a scored rollout",
  );
  step.state = "updating";
  step.updateLeaseUntil = now + leaseMs;
  step.staleness = stalenessOf(run, rollouts);
  context.deliverUpdate(step);
}

/** Rollouts of the step's groups that count. */
const trainable = (run: RunRow, { stepId }: StepRow): RolloutRow[] => {
  const aside = new Set(run.groups.filter(({ setAside }) => setAside !== null).map(({ groupId }) => groupId));
  return run.rollouts.filter((rollout) => rollout.stepId === stepId && !aside.has(rollout.groupId));
};

function stalenessOf(run: RunRow, rollouts: readonly RolloutRow[]): number {
  const learner = run.servingVersion ?? 0;
  return rollouts.reduce((most, { firstVersion }) => Math.max(most, learner - (firstVersion ?? learner)), 0);
}

function leaveGroups({ run, now }: ApplyContext, step: StepRow, leave: NonNullable<Of<"begin-update">["leave"]>): void {
  assert.equal(leave.step, step.step + 1);
  assert.ok(!twin(run, "train", leave.step), "the next step is made here");
  const stepId = `${run.runId}-train-${leave.step}`;
  run.steps.push({
    ...fresh,
    stepId,
    purpose: "train",
    step: leave.step,
    source: "planned",
    state: "gathering",
    createdAt: now,
  });
  for (const groupId of leave.groupIds) {
    const group = run.groups.find((row) => row.groupId === groupId);
    assert.ok(group && group.stepId === step.stepId && group.setAside === null, "a group of the step that counts");
    group.stepId = stepId;
    for (const rollout of run.rollouts) if (rollout.groupId === groupId) rollout.stepId = stepId;
  }
}

const newRollout = (
  stepId: string,
  groupId: string,
  { purpose, ...own }: Pick<RolloutRow, "taskSet" | "sample" | "purpose" | "readyAt">,
): RolloutRow => {
  const { holds: _none, ...row } = buildRollout({ ...own, stepId, groupId, rolloutId: `${groupId}-${own.sample}` });
  return {
    ...row,
    ...{ purpose, firstVersion: null, settledAt: null, held: false },
    ...{ leases: [], alive: false, runEnding: null, settledTimes: 0 },
  };
};
