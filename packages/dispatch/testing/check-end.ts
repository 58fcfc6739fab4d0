/** What must hold once a run of the little world has ended. */
import { strict as assert } from "node:assert";
import { counts } from "./build-snapshot.ts";
import type { World } from "./world.ts";
import { type RunRow, type StepRow, usedOf } from "./world-rows.ts";

function checkRun(run: RunRow): void {
  const { groupPolicy } = run.config.algorithm;
  assert.ok(run.rollouts.every(({ settledTimes, state }) => settledTimes === 1 && state === "settled"));
  assert.ok(run.steps.every(({ state }) => state !== "gathering" && state !== "updating"));
  for (const { attempt, purpose } of run.rollouts) {
    assert.ok(attempt <= (groupPolicy === "wait" && purpose === "train" ? 9 : 3), `${attempt} attempts`);
  }
  for (const step of run.steps.filter(({ trained }) => trained)) checkTrained(run, step);
  for (const step of run.steps.filter(({ purpose }) => purpose === "evaluate")) {
    const of = run.rollouts.filter(({ stepId, firstVersion }) => stepId === step.stepId && firstVersion !== null);
    assert.ok(
      of.every(({ firstVersion }) => firstVersion === step.step),
      "an evaluation measures one version",
    );
  }
}

function checkTrained(run: RunRow, step: StepRow): void {
  const { name, maxStaleness, zeroVariance, overSample } = run.config.dispatcher;
  const { groupsPerStep, groupSize } = run.config.algorithm;
  const groups = run.groups.filter(({ stepId, setAside }) => stepId === step.stepId && setAside === null);
  const trained = groups.map(({ groupId }) => scoresOf(run, groupId)).filter(({ length }) => length > 0);
  // Those that the group policy gave up stay in the step and train nothing.
  assert.ok(trained.length <= groupsPerStep, "no more groups than a step needs");
  assert.ok(trained.length > 0, "something is trained");
  assert.ok(trained.every(({ length }) => length <= groupSize + overSample.rollouts));
  if (zeroVariance.mode !== "keep" && groupSize > 1) {
    assert.ok(
      trained.every((rewards) => new Set(rewards).size > 1),
      "no group of equal rewards",
    );
  }
  assert.ok(step.staleness <= (name === "async" ? maxStaleness : 0), `staleness ${step.staleness}`);
}

/** Rewards of a group that are trained: none where the group policy gave it up. */
function scoresOf({ config, rollouts }: RunRow, groupId: string): number[] {
  const group = rollouts.filter((rollout) => rollout.groupId === groupId);
  const lost = group.filter(({ reward, ending }) => reward === null && ending !== "not_needed").length;
  const dropped = config.algorithm.groupPolicy === "drop-group" && lost > config.dispatcher.overSample.rollouts;
  return dropped ? [] : group.flatMap(({ reward }) => (reward === null ? [] : [reward]));
}

/** @throws AssertionError */
export function checkEnd(world: World): void {
  for (const run of world.runs) checkRun(run);
  assert.deepEqual(usedOf(world.runs), counts(0), "every lease came back");
}
