/** What must hold once a run of the little world has ended. */
import { strict as assert } from "node:assert";
import { counts } from "./build-snapshot.ts";
import type { World } from "./world.ts";
import { type RunRow, usedOf } from "./world-rows.ts";

function checkRun(run: RunRow): void {
  const { groupPolicy } = run.config.algorithm;
  assert.ok(run.rollouts.every(({ settledTimes, state }) => settledTimes === 1 && state === "settled"));
  assert.ok(run.steps.every(({ state }) => state !== "gathering" && state !== "updating"));
  for (const { attempt, purpose } of run.rollouts) {
    assert.ok(attempt <= (groupPolicy === "wait" && purpose === "train" ? 9 : 3), `${attempt} attempts`);
  }
  for (const step of run.steps.filter(({ trained }) => trained)) {
    assert.ok(run.rollouts.some(({ stepId, reward }) => stepId === step.stepId && reward !== null));
  }
}

/** @throws AssertionError */
export function checkEnd(world: World): void {
  for (const run of world.runs) checkRun(run);
  assert.deepEqual(usedOf(world.runs), counts(0), "every lease came back");
}
