import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { act, admitAll, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { turnEntry } from "../../testing/seed-rollouts.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { claimStage } from "../hot/claim-stage.ts";
import { type BatchRequest, requestBatch } from "./batch-requests.ts";
import { readFinishedRollouts } from "./finished-rollouts.ts";
import { renewTrainerLease } from "./trainer-lease.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const request = (runId: string, trainerStep = 1): BatchRequest => ({
  runId,
  trainerStep,
  instances: [
    { taskSet: 0, index: 4 },
    { taskSet: 0, index: 9 },
  ],
  samples: 2,
  policyVersion: 0,
  deadlineMs: 60_000,
});

test("a scripted trainer asks twice, takes what settled by cursor, and gets each rollout once", async () => {
  const { pool } = database;
  const { runId } = await startPlannedRun(pool, { config: { stepSource: "driven" } });
  const asked = await Promise.all([requestBatch(pool, request(runId)), requestBatch(pool, request(runId))]);
  expect(asked[1]).toEqual(asked[0]);
  const [{ batchId } = { batchId: "" }] = asked;
  await expect(requestBatch(pool, { ...request(runId), samples: 3 })).rejects.toBeInstanceOf(ConflictError);
  const [batch] = (await snapshotOf(pool, runId)).batchRequests;
  expect(batch).toMatchObject({
    batchId,
    trainerStep: 1,
    groupSize: 2,
    groups: [{ taskSet: 0, split: "train", instanceIndex: 4 }, { instanceIndex: 9 }],
  });
  const page = (cursor: number) => readFinishedRollouts(pool, { runId, batchId, cursor, limit: 3 });
  expect(await page(0)).toEqual({ batchId, state: "requested", rollouts: [], cursor: 0, done: false });

  const { groups = [], groupSize = 0 } = batch ?? {};
  await act(pool, runId, [
    { do: "create-step", purpose: "train", step: 1, source: "driven", batchId, groups, groupSize },
  ]);
  expect((await snapshotOf(pool, runId)).batchRequests).toEqual([]);
  await act(pool, runId, admitAll(await snapshotOf(pool, runId)));
  const writer = new BatchWriter(pool);
  const taken: string[] = [];
  let cursor = 0;
  const settled: string[] = [];
  for (const rollout of [...(await snapshotOf(pool, runId)).rollouts].reverse()) {
    const claimed = await claimStage(pool, { ...rollout, workerId: "w1" });
    const held = { runId, rolloutId: rollout.rolloutId, attempt: 1, claim: claimed?.claim ?? 0 };
    await writer.write(turnEntry(held, 0));
    const to = {
      move: "settle",
      outcome: "completed",
      ending: "answer",
      reason: null,
      reward: 1,
      rewardParts: {},
      success: true,
    } as const;
    await writer.write({ kind: "edge", ...held, stage: "init", to });
    settled.push(rollout.rolloutId);
    const next = await page(cursor);
    expect(next.done).toBe(settled.length === 4);
    taken.push(...next.rollouts.map(({ rolloutId }) => rolloutId));
    const [back] = next.rollouts;
    expect(back).toMatchObject({ taskSet: 0, instanceId: `key-chain-train-${back?.instanceIndex}`, reward: 1 });
    expect([4, 9]).toContain(back?.instanceIndex);
    expect(next.rollouts[0]?.trajectory.turns).toHaveLength(1);
    cursor = next.cursor;
  }
  expect(taken).toEqual(settled);
  const all = await page(0);
  expect(all.rollouts.map(({ rolloutId }) => rolloutId)).toEqual(settled.slice(0, 3));
  expect(all.done).toBe(false);
  const stepId = (await snapshotOf(pool, runId)).steps[0]?.stepId ?? "";
  await act(pool, runId, [{ do: "end-step", stepId, from: "gathering", to: "done", reason: null }]);
  expect(await page(cursor)).toMatchObject({ state: "done", rollouts: [], done: true });
  expect(await requestBatch(pool, request(runId))).toEqual({ batchId, state: "done" });
  await writer.close();
});

test("the trainer's lease and version are noted; a planned run, an ended run and an unknown one have no trainer", async () => {
  const { pool } = database;
  const { runId } = await startPlannedRun(pool, { config: { stepSource: "driven" } });
  await renewTrainerLease(pool, { runId, leaseMs: 60_000, policyVersion: 3 });
  await renewTrainerLease(pool, { runId, leaseMs: 60_000, policyVersion: 2 });
  const snapshot = await snapshotOf(pool, runId);
  expect(snapshot.servingVersion).toBe(3);
  expect(snapshot.trainerLeaseUntil ?? 0).toBeGreaterThan(snapshot.now);
  const planned = await startPlannedRun(pool);
  await expect(renewTrainerLease(pool, { runId: planned.runId, leaseMs: 60_000 })).rejects.toBeInstanceOf(
    ConflictError,
  );
  await expect(requestBatch(pool, request(planned.runId))).rejects.toBeInstanceOf(ConflictError);
  await expect(requestBatch(pool, request("nobody"))).rejects.toBeInstanceOf(NotFoundError);
  await pool.query("update runs set status = 'stopped' where id = $1", [runId]);
  await expect(requestBatch(pool, request(runId, 5))).rejects.toThrow(/stopped/);
  await expect(renewTrainerLease(pool, { runId, leaseMs: 60_000 })).rejects.toBeInstanceOf(ConflictError);
});
