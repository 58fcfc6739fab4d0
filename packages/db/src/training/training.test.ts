import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import type { Action } from "@rolldeck/contracts/plan";
import { afterAll, beforeAll, expect, test } from "vitest";
import { act, admitAll, createStep, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { turnEntry } from "../../testing/seed-rollouts.ts";
import { reportGpuWorker, supervisedGpuWorker } from "../gpu-workers.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { claimStage } from "../hot/claim-stage.ts";
import { newestCheckpoint, recordCheckpoint } from "./checkpoints.ts";
import { claimPrepare, failPrepare, renewPrepare } from "./claim-prepare.ts";
import { type ClaimedUpdate, claimUpdate, failUpdate, renewUpdate } from "./claim-update.ts";
import { finishUpdate } from "./finish-update.ts";
import { readStepRollouts } from "./read-step-rollouts.ts";
import { writeRowFindings } from "./row-findings.ts";
import { setBoot } from "./set-boot.ts";
import { setModel } from "./set-model.ts";
import { nextTrainerSeq, resetTrainerSeq } from "./trainer-seq.ts";
import { readTrainingRows, type TrainingRow, writeTrainingRows } from "./training-rows.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function events(runId: string): Promise<EventBody[]> {
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [runId]);
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, place) => place + 1));
  return rows.map((row) => EventBody.parse(row.body));
}

/** A run whose first step is gathered (two rollouts of one turn each) and whose update is claimed. */
async function startUpdate(): Promise<{ runId: string; update: ClaimedUpdate }> {
  const { pool } = database;
  const { runId } = await startPlannedRun(pool, { groups: 1, groupSize: 2 });
  const writer = new BatchWriter(pool);
  await act(pool, runId, admitAll(await snapshotOf(pool, runId)));
  for (const rollout of (await snapshotOf(pool, runId)).rollouts) {
    const claimed = await claimStage(pool, { ...rollout, workerId: "w1" });
    const held = { runId, rolloutId: rollout.rolloutId, attempt: 1, claim: claimed?.claim ?? 0 };
    await writer.write(turnEntry(held, 0, { observation: 3, sampled: 2 }));
    await writer.write({
      kind: "edge",
      ...held,
      stage: "init",
      to: {
        move: "settle",
        outcome: "completed",
        ending: "answer",
        reason: null,
        reward: rollout.sample,
        rewardParts: { right: rollout.sample },
        success: rollout.sample === 1,
      },
    });
  }
  await writer.close();
  const stepId = (await snapshotOf(pool, runId)).steps[0]?.stepId ?? "";
  const begun = await act(pool, runId, [{ do: "begin-update", stepId }]);
  expect(begun.jobs).toEqual([{ name: "update", payload: { runId, stepId } }]);
  const claims = await Promise.all([claimUpdate(pool, stepId, "w1"), claimUpdate(pool, stepId, "w2")]);
  const [update, ...others] = claims.filter((claim) => claim !== null);
  expect(others).toEqual([]);
  if (!update) throw new Error("no claim");
  return { runId, update };
}

async function rowsOf(stepId: string): Promise<TrainingRow[]> {
  const rollouts = await readStepRollouts(database.pool, stepId);
  return rollouts.map(({ rolloutId, attempt, reward }, row) => ({
    row,
    rolloutId,
    attempt,
    ranges: [{ start: 0, end: 5 }],
    mask: [
      { count: 3, reason: "observation" },
      { count: 2, reason: null },
    ],
    advantage: (reward ?? 0) - 0.5,
    scale: 0.125,
    sent: true,
  }));
}

test("the prepare job has one holder; a lost claim sends, writes and renews nothing", async () => {
  const { pool } = database;
  const { runId } = await startPlannedRun(pool);
  const ready = { name: supervisedGpuWorker, url: null, state: "ready", boot: null, device: "cpu" } as const;
  expect(await reportGpuWorker(pool, { ...ready, bootId: "boot-2" })).toEqual({ changed: true });
  expect(await reportGpuWorker(pool, { ...ready, bootId: "boot-2" })).toEqual({ changed: false });
  expect((await snapshotOf(pool, runId)).backendBootId).toBe("boot-2");
  const asked = await act(pool, runId, [{ do: "prepare" }]);
  expect(asked.jobs).toEqual([{ name: "prepare", payload: { runId } }]);
  expect(await act(pool, runId, [{ do: "prepare" }])).toMatchObject({ applied: 0, refused: 1 });
  const [claim, other] = await Promise.all([claimPrepare(pool, runId, "w1"), claimPrepare(pool, runId, "w2")]);
  const held = claim ?? other;
  expect([claim, other]).toContain(null);
  const holder = { kind: "prepare", runId, claim: held?.claim ?? 0 } as const;
  await resetTrainerSeq(pool, holder, 0);
  expect([await nextTrainerSeq(pool, holder), await nextTrainerSeq(pool, holder)]).toEqual([1, 2]);
  expect(await renewPrepare(pool, runId, holder.claim)).toBe(true);

  await pool.query("update runs set prepare_lease_until = now() - interval '1 second' where id = $1", [runId]);
  const second = await claimPrepare(pool, runId, "w2");
  expect(second?.claim).toBe(holder.claim + 1);
  expect(await renewPrepare(pool, runId, holder.claim)).toBe(false);
  await expect(nextTrainerSeq(pool, holder)).rejects.toBeInstanceOf(FencedError);
  await expect(failPrepare(pool, { ...holder, reason: "late" })).rejects.toBeInstanceOf(FencedError);
  const model = {
    runId,
    modelId: "m2",
    bootId: "boot-2",
    samplingSessionId: "s1",
    version: 0,
    checkpoint: "warm",
    replayed: 0,
  };
  await expect(setModel(pool, { ...model, claim: holder.claim })).rejects.toBeInstanceOf(FencedError);

  await failPrepare(pool, { runId, claim: second?.claim ?? 0, reason: "no memory" });
  const failed = await snapshotOf(pool, runId);
  expect(failed).toMatchObject({ prepareFailures: 1, prepareReason: "no memory" });
  expect(failed.prepareLeaseUntil ?? 0).toBeGreaterThan(failed.now);
  await pool.query("update runs set prepare_lease_until = now() where id = $1", [runId]);
  const third = await claimPrepare(pool, runId, "w1");
  await setBoot(pool, runId, {
    phase: "create-model",
    message: "loading\u0000",
    done: 1,
    total: 2,
    unit: "MB",
    elapsedMs: 5,
  });
  // An update that ended meanwhile has brought the run to another version than this model has.
  const behind = setModel(pool, { ...model, claim: third?.claim ?? 0, version: 1 });
  await expect(behind).rejects.toBeInstanceOf(FencedError);
  await setModel(pool, { ...model, claim: third?.claim ?? 0 });
  const set = await snapshotOf(pool, runId);
  expect(set).toMatchObject({ modelBootId: "boot-2", prepareFailures: 0, prepareLeaseUntil: null, servingVersion: 0 });
  expect((await events(runId)).slice(-4).map(({ type }) => type)).toEqual([
    "note",
    "boot-progress",
    "model-adopted",
    "version-serving",
  ]);
  expect((await events(runId)).at(-2)).toMatchObject({ type: "model-adopted", fresh: false });
  await reportGpuWorker(pool, { ...ready, state: "lost", bootId: null });
  expect((await snapshotOf(pool, runId)).backendBootId).toBeNull();
  await reportGpuWorker(pool, { ...ready, bootId: "boot-1" });
});

test("rows are stored once, read back with tokens, annotated, and the step is finished in one write that may be repeated", async () => {
  const { pool } = database;
  const { runId, update } = await startUpdate();
  const step = { stepId: update.stepId, claim: update.claim };
  const rollouts = await readStepRollouts(pool, update.stepId);
  expect(
    rollouts.map(({ reward, success, turns, sampledTokens, ending }) => ({
      reward,
      success,
      turns,
      sampledTokens,
      ending,
    })),
  ).toEqual([
    { reward: 0, success: false, turns: 1, sampledTokens: 2, ending: "answer" },
    { reward: 1, success: true, turns: 1, sampledTokens: 2, ending: "answer" },
  ]);
  const rows = await rowsOf(update.stepId);
  expect(await writeTrainingRows(pool, step, rows)).toEqual({ written: true });
  expect(
    await writeTrainingRows(
      pool,
      step,
      rows.map((row) => ({ ...row, advantage: 9 })),
    ),
  ).toEqual({ written: false });
  const [stored] = await readTrainingRows(pool, runId, 1, 1);
  expect(stored?.rows).toMatchObject(rows.map((row) => ({ ...row, correction: null, refLogprobs: null })));
  const segments = rollouts[0]?.trajectory.segments ?? [];
  expect(stored?.rows[0]?.tokens).toEqual(segments.flatMap((segment) => segment.tokens));
  expect(stored?.rows[0]?.logprobs).toEqual([null, null, null, ...(segments[1]?.logprobs ?? [])]);

  await writeRowFindings(pool, step, [{ row: 1, trainerLogprobs: [null, null, null, -0.5, -0.25] }]);
  const { rows: noted } = await pool.query(
    "select row, length(trainer_logprobs) as bytes from training_rows where step_id = $1 order by row",
    [update.stepId],
  );
  expect(noted).toEqual([
    { row: 0, bytes: null },
    { row: 1, bytes: 16 },
  ]);

  const holder = { kind: "update", runId, ...step } as const;
  const seqs = [await nextTrainerSeq(pool, holder), await nextTrainerSeq(pool, holder)];
  expect(seqs[1]).toBe((seqs[0] ?? 0) + 1);
  const sequences = async () =>
    (await pool.query("select trainer_seq::int, settled_seq::int, model_id from runs where id = $1", [runId])).rows[0];
  expect(await sequences()).toMatchObject({ trainer_seq: seqs[1], settled_seq: update.settledSeq });
  expect(update.settledSeq).toBe(update.trainerSeq);
  const finished = {
    runId,
    ...step,
    modelId: "m-of-update",
    version: 1,
    bootId: "boot-1",
    samplingSessionId: "s1",
    metrics: { "reward/mean": 0.5, "policy/loss": Number.NaN, "policy/grad-norm": Number.POSITIVE_INFINITY },
  };
  await finishUpdate(pool, finished);
  await finishUpdate(pool, finished);
  await expect(finishUpdate(pool, { ...finished, claim: 99 })).rejects.toBeInstanceOf(FencedError);
  await expect(nextTrainerSeq(pool, holder)).rejects.toBeInstanceOf(FencedError);
  expect(await sequences()).toEqual({ trainer_seq: seqs[1], settled_seq: seqs[1], model_id: "m-of-update" });
  expect((await events(runId)).slice(-3)).toEqual([
    {
      type: "step-status",
      stepId: update.stepId,
      step: 1,
      purpose: "train",
      from: "updating",
      to: "done",
      reason: null,
    },
    { type: "version-serving", version: 1, step: 1, bootId: "boot-1" },
    { type: "metrics-written", step: 1, names: 3 },
  ]);
  const { rows: points } = await pool.query("select name, value from metric_points where run_id = $1 order by name", [
    runId,
  ]);
  expect(points).toEqual([
    { name: "policy/grad-norm", value: Number.POSITIVE_INFINITY },
    { name: "policy/loss", value: Number.NaN },
    { name: "reward/mean", value: 0.5 },
  ]);
  const { rows: versions } = await pool.query(
    "select version, state from policy_versions where run_id = $1 order by 1",
    [runId],
  );
  expect(versions).toEqual([
    { version: 0, state: "retired" },
    { version: 1, state: "serving" },
  ]);
  expect(await snapshotOf(pool, runId)).toMatchObject({ servingVersion: 1, steps: [{ state: "done" }], rollouts: [] });
  await act(pool, runId, [createStep(2, 1, 1)]);
  expect((await snapshotOf(pool, runId)).rollouts).toHaveLength(1);
});

test("an update that fails is counted and waits; one whose lease is past goes to another, and the old holder is fenced", async () => {
  const { pool } = database;
  const { runId, update } = await startUpdate();
  const again: Action = { do: "redeliver-update", stepId: update.stepId };
  expect(await renewUpdate(pool, update.stepId, update.claim)).toBe(true);
  expect(await act(pool, runId, [again])).toMatchObject({ applied: 0, refused: 1 });
  await pool.query("update steps set lease_until = now() - interval '1 second' where id = $1", [update.stepId]);
  expect((await act(pool, runId, [again])).jobs).toHaveLength(1);
  expect(await renewUpdate(pool, update.stepId, update.claim)).toBe(false);
  await expect(writeTrainingRows(pool, update, await rowsOf(update.stepId))).rejects.toBeInstanceOf(FencedError);
  const finished = {
    runId,
    stepId: update.stepId,
    claim: update.claim,
    modelId: "m",
    version: 1,
    bootId: "b",
    samplingSessionId: "s",
    metrics: {},
  };
  await expect(finishUpdate(pool, finished)).rejects.toBeInstanceOf(FencedError);
  const second = await claimUpdate(pool, update.stepId, "w2");
  await failUpdate(pool, { stepId: update.stepId, claim: second?.claim ?? 0, reason: "out of memory" });
  const snapshot = await snapshotOf(pool, runId);
  expect(snapshot.steps[0]).toMatchObject({ updateFailures: 1, state: "updating" });
  expect(snapshot.steps[0]?.updateLeaseUntil ?? 0).toBeGreaterThan(snapshot.now);
  const third = await claimUpdate(pool, update.stepId, "w2");
  await failUpdate(pool, { stepId: update.stepId, claim: third?.claim ?? 0, reason: "stopping", counted: false });
  expect((await snapshotOf(pool, runId)).steps[0]?.updateFailures).toBe(1);
});

test("a checkpoint is recorded once; the newest up to a version is found", async () => {
  const { pool } = database;
  const { runId } = await startPlannedRun(pool);
  expect(await newestCheckpoint(pool, runId)).toBeNull();
  const { claim } = (await claimPrepare(pool, runId, "w1")) ?? { claim: 0 };
  const holder = { kind: "prepare", runId, claim } as const;
  for (const version of [0, 10, 20, 20])
    await recordCheckpoint(pool, holder, { version, name: `v${version}`, path: `p${version}`, bytes: 3_000_000_000 });
  expect(await newestCheckpoint(pool, runId)).toEqual({ version: 20, name: "v20", path: "p20", bytes: 3_000_000_000 });
  expect(await newestCheckpoint(pool, runId, 19)).toMatchObject({ version: 10 });
  expect((await events(runId)).filter(({ type }) => type === "checkpoint-saved")).toHaveLength(3);
});

test("an update has neither groups that were set aside nor what was started beyond its need", async () => {
  const { pool } = database;
  const { runId, update } = await startUpdate();
  const { stepId } = update;
  const whole = await readStepRollouts(pool, stepId);
  expect(whole.map(({ sample }) => sample)).toEqual([0, 1]);
  await pool.query(
    "update rollouts set ending = 'not_needed', outcome = 'cancelled' where run_id = $1 and sample = 0",
    [runId],
  );
  expect((await readStepRollouts(pool, stepId)).map(({ sample }) => sample)).toEqual([1]);
  await pool.query("update groups set set_aside = 'zero-variance' where run_id = $1", [runId]);
  expect(await readStepRollouts(pool, stepId)).toEqual([]);
});
