/** Driven steps: an outside trainer asks for batches, takes finished rollouts back by cursor, and makes the updates itself. */

import { requestBatch } from "@rolldeck/db/driven/batch-requests";
import { readFinishedRollouts } from "@rolldeck/db/driven/finished-rollouts";
import { renewTrainerLease } from "@rolldeck/db/driven/trainer-lease";
import { wakeRun } from "@rolldeck/db/runs/wake";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

/** One step of the scripted trainer. @returns its rollouts in the order they were taken */
async function trainerStep(made: Rig, runId: string, step: number) {
  const { pool } = made.database;
  await renewTrainerLease(pool, { runId, leaseMs: 60_000 });
  const request = {
    runId,
    trainerStep: step,
    instances: [0, 1, 2].map((index) => ({ taskSet: 0, index: 100 * step + index })),
    samples: 2,
    policyVersion: 0,
    deadlineMs: null,
  };
  const { batchId } = await requestBatch(pool, request);
  // The trainer may ask again after a lost answer.
  expect((await requestBatch(pool, request)).batchId).toBe(batchId);
  await wakeRun(pool, runId);
  const taken: string[] = [];
  let cursor = 0;
  await made.until(`batch ${step}`, async () => {
    const page = await readFinishedRollouts(pool, { runId, batchId, cursor, limit: 4 });
    taken.push(...page.rollouts.map(({ rolloutId }) => rolloutId));
    for (const rollout of page.rollouts) expect(rollout.trajectory.turns.length).toBeGreaterThan(0);
    cursor = page.cursor;
    return page.done;
  });
  return taken;
}

test("a scripted trainer takes every rollout of its batches once, and the run makes no update", async () => {
  rig = await startRig({ delayMs: 5 });
  const made = rig;
  const runId = await made.launch(smokeConfig({ stepSource: "driven", budget: { steps: 2 } }));
  await made.untilStatus(runId, "running");
  const taken = [...(await trainerStep(made, runId, 1)), ...(await trainerStep(made, runId, 2))];
  expect(taken).toHaveLength(12);
  expect(new Set(taken).size).toBe(12);
  expect(await made.untilStatus(runId, "completed", "failed", "paused")).toBe("completed");
  expect(await made.value("select step from runs where id = $1", [runId])).toBe(2);
  expect(made.gpu.stats.requests.get("/api/v1/optim_step")).toBeUndefined();
  expect(await made.value("select count(*)::int from training_rows where run_id = $1", [runId])).toBe(0);
  const { rows } = await made.database.pool.query<{ name: string; step: number; value: number }>(
    "select name, step, value from metric_points where run_id = $1 order by step, name",
    [runId],
  );
  const reward = rows.filter(({ name }) => name === "reward/mean" || name === "shared/reward");
  expect(reward.map(({ name, step }) => [step, name])).toEqual(
    [1, 2].flatMap((step) => [
      [step, "reward/mean"],
      [step, "shared/reward"],
    ]),
  );
  const mean =
    "select avg(r.reward)::float8 from rollouts r join steps s on s.id = r.step_id where s.run_id = $1 and s.step = 1";
  for (const { value } of reward.slice(0, 2)) expect(value).toBeCloseTo(Number(await made.value(mean, [runId])), 9);
  // What only the trainer knows is left out.
  expect(rows.filter(({ name }) => /mismatch|trained-tokens|logprob-gap|policy\/loss/.test(name))).toEqual([]);
});

test("a trainer that falls silent past its lease pauses the run", async () => {
  rig = await startRig();
  const made = rig;
  const runId = await made.launch(smokeConfig({ stepSource: "driven" }));
  await made.untilStatus(runId, "running");
  await renewTrainerLease(made.database.pool, { runId, leaseMs: 500 });
  expect(await made.untilStatus(runId, "paused", "failed")).toBe("paused");
});
