import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import type { Action, NewLease } from "@rolldeck/contracts/plan";
import { afterAll, beforeAll, expect, test } from "vitest";
import { act, admitAll, createStep, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { type ClaimedStage, claimStage } from "../hot/claim-stage.ts";
import { holdPart } from "../hot/hold-part.ts";
import { moveRun } from "../runs/move-run.ts";
import { poolLedger, readPools } from "./pools.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

const runLease: NewLease[] = [
  { resource: "initSlot", until: "init" },
  { resource: "sandbox", until: "run" },
];

async function events(runId: string): Promise<{ seq: number; body: EventBody }[]> {
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [runId]);
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, place) => place + 1));
  return rows.map((row) => ({ seq: row.seq, body: EventBody.parse(row.body) }));
}
const used = async () => Object.fromEntries((await readPools(database.pool)).map((pool) => [pool.resource, pool.used]));
async function claimOne(runId: string, place = 0): Promise<ClaimedStage> {
  const snapshot = await snapshotOf(database.pool, runId);
  const queued = snapshot.rollouts.filter(({ state }) => state === "queued")[place];
  if (!queued) throw new Error("nothing is queued");
  const claimed = await claimStage(database.pool, { ...queued, workerId: "w1" });
  if (!claimed) throw new Error("not claimed");
  return { ...claimed, rolloutId: queued.rolloutId } as ClaimedStage & { rolloutId: string };
}
const entryOf = (claimed: ClaimedStage) => {
  const { rolloutId } = claimed as ClaimedStage & { rolloutId: string };
  return {
    kind: "edge" as const,
    runId: claimed.runId,
    rolloutId,
    attempt: claimed.attempt,
    claim: claimed.claim,
    stage: claimed.stage,
  };
};

test("from launch to the first step: statuses, model, version and rollouts, each with its event", async () => {
  const { runId } = await startPlannedRun(database.pool);
  const snapshot = await snapshotOf(database.pool, runId);
  expect(snapshot).toMatchObject({
    status: "running",
    servingVersion: 0,
    modelBootId: "boot-1",
    backendBootId: "boot-1",
  });
  expect(snapshot.rollouts).toHaveLength(8);
  expect(snapshot.rollouts[0]).toMatchObject({
    stage: "init",
    state: "waiting",
    attempt: 1,
    claim: 0,
    holds: [],
    ending: null,
  });
  expect(new Set(snapshot.rollouts.map(({ groupId }) => groupId)).size).toBe(2);
  const types = (await events(runId)).map(({ body }) => body.type);
  expect(types).toEqual([
    "run-created",
    "run-status",
    "model-adopted",
    "version-serving",
    "run-status",
    "step-created",
  ]);
  // The same step again, by a planner with an old view, is refused.
  expect(await act(database.pool, runId, [createStep(1, 2, 4)])).toMatchObject({ applied: 0, refused: 1 });
});

test("a plan applied twice, or by two processes at once, does its work once", async () => {
  const { runId } = await startPlannedRun(database.pool);
  const before = await used();
  const snapshot = await snapshotOf(database.pool, runId);
  const plan = admitAll(snapshot, runLease);
  const results = await Promise.all([
    act(database.pool, runId, plan, snapshot),
    act(database.pool, runId, plan, snapshot),
  ]);
  expect(results.reduce((sum, result) => sum + result.applied, 0)).toBe(8);
  expect(results.reduce((sum, result) => sum + result.jobs.length, 0)).toBe(8);
  expect(await act(database.pool, runId, plan, snapshot)).toMatchObject({ applied: 0, refused: 8, jobs: [] });
  const after = await snapshotOf(database.pool, runId);
  expect(after.held).toMatchObject({ initSlot: 8, sandbox: 8 });
  expect(await used()).toMatchObject({ initSlot: (before.initSlot ?? 0) + 8, sandbox: (before.sandbox ?? 0) + 8 });
  expect(await poolLedger(database.pool)).toEqual([]);
});

test("what a person holds is not admitted, whatever the planner saw", async () => {
  const { runId } = await startPlannedRun(database.pool);
  const snapshot = await snapshotOf(database.pool, runId);
  const [first, ...others] = snapshot.rollouts;
  const by = { held: true, by: "tests" } as const;
  await holdPart(database.pool, { part: "rollout", id: first?.rolloutId ?? "", ...by });
  await holdPart(database.pool, { part: "group", id: others.at(-1)?.groupId ?? "", ...by });
  expect(await act(database.pool, runId, admitAll(snapshot, runLease), snapshot)).toMatchObject({ applied: 3 });
  expect((await snapshotOf(database.pool, runId)).held.initSlot).toBe(3);
});

test("a rollout walks through its stages; leases go back where they end", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 1 });
  const writer = new BatchWriter(database.pool);
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), runLease));
  await writer.write({ ...entryOf(await claimOne(runId)), to: { move: "next-stage", stage: "run" } });
  expect((await snapshotOf(database.pool, runId)).rollouts[0]).toMatchObject({
    stage: "run",
    state: "waiting",
    holds: ["sandbox"],
  });
  await act(
    database.pool,
    runId,
    admitAll(await snapshotOf(database.pool, runId), [{ resource: "runSlot", until: "run" }]),
  );
  const run = await claimOne(runId);
  expect(run).toMatchObject({ stage: "run", claim: 2, deliveries: 1 });
  await writer.write({
    ...entryOf(run),
    to: { move: "next-stage", stage: "evaluate", ending: "finish_tool", finalAnswer: "7" },
  });
  expect((await snapshotOf(database.pool, runId)).rollouts[0]).toMatchObject({
    stage: "evaluate",
    ending: "finish_tool",
    holds: [],
  });

  // Grading fails once, is tried again on what the run stage left, then settles.
  const grade: NewLease[] = [{ resource: "gradeSlot", until: "evaluate" }];
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), grade));
  const failed = await claimOne(runId);
  expect(failed).toMatchObject({ ending: "finish_tool", finalAnswer: "7" });
  await writer.write({ ...entryOf(failed), to: { move: "release", reason: "verifier broke", failure: "evaluate" } });
  const [broken] = (await snapshotOf(database.pool, runId)).rollouts;
  expect(broken).toMatchObject({
    state: "waiting",
    ending: "verifier_error",
    evaluateFailures: 1,
    holds: [],
    reason: "verifier broke",
  });
  const regrade: Action = {
    do: "regrade",
    rolloutId: broken?.rolloutId ?? "",
    attempt: 1,
    notBefore: 0,
    reason: "again",
  };
  await act(database.pool, runId, [regrade]);
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), grade));
  const again = await claimOne(runId);
  expect(again).toMatchObject({ ending: "finish_tool", finalAnswer: "7", deliveries: 1 });
  const settle = {
    move: "settle",
    outcome: "completed",
    ending: "finish_tool",
    reason: null,
    reward: 1,
    rewardParts: { right: 1 },
    success: true,
  } as const;
  await writer.write({ ...entryOf(again), to: settle });
  await expect(writer.write({ ...entryOf(again), to: settle })).rejects.toBeInstanceOf(FencedError);
  expect((await snapshotOf(database.pool, runId)).rollouts[0]).toMatchObject({
    state: "settled",
    outcome: "completed",
    reward: 1,
    ending: "finish_tool",
  });
  const { rows: spans } = await database.pool.query(
    "select stage, started_at is not null as started, ended_at is not null as ended from stage_spans where run_id = $1 order by stage",
    [runId],
  );
  expect(spans).toEqual(["evaluate", "init", "run"].map((stage) => ({ stage, started: true, ended: true })));
  await events(runId);
  expect(await poolLedger(database.pool)).toEqual([]);
  await writer.close();
});

test("a graceful hand-back keeps attempt and leases and is delivered again at once", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 1 });
  const writer = new BatchWriter(database.pool);
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), runLease));
  const first = await claimOne(runId);
  await writer.write({ ...entryOf(first), to: { move: "release", reason: "stopping", failure: "none" } });
  const snapshot = await snapshotOf(database.pool, runId);
  const [rollout] = snapshot.rollouts;
  expect(rollout).toMatchObject({ state: "queued", attempt: 1, deliveries: 0, infrastructureFailures: 0 });
  expect(rollout?.leaseUntil ?? 0).toBeLessThanOrEqual(snapshot.now);
  expect(rollout?.holds.length).toBe(2);
  const again: Action = { do: "redeliver", rolloutId: rollout?.rolloutId ?? "", attempt: 1, stage: "init" };
  const applied = await act(database.pool, runId, [again]);
  expect(applied.jobs).toEqual([
    { name: "stage", payload: { runId, rolloutId: rollout?.rolloutId, attempt: 1, stage: "init" } },
  ]);
  // Its lease is not past any more.
  expect(await act(database.pool, runId, [again])).toMatchObject({ applied: 0, refused: 1 });
  expect((await claimOne(runId)).claim).toBeGreaterThan(first.claim);
  await writer.close();
});

test("a retry starts a new attempt from init, releases everything and fences the old worker", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 1 });
  const writer = new BatchWriter(database.pool);
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), runLease));
  const lost = await claimOne(runId);
  const [rollout] = (await snapshotOf(database.pool, runId)).rollouts;
  const retry: Action = {
    do: "retry",
    rolloutId: rollout?.rolloutId ?? "",
    attempt: 1,
    notBefore: Date.now() + 60_000,
    reason: "sandbox lost",
  };
  await act(database.pool, runId, [retry]);
  await expect(writer.write({ ...entryOf(lost), to: { move: "next-stage", stage: "run" } })).rejects.toBeInstanceOf(
    FencedError,
  );
  const [next] = (await snapshotOf(database.pool, runId)).rollouts;
  expect(next).toMatchObject({ attempt: 2, stage: "init", state: "waiting", holds: [], deliveries: 0, ending: null });
  expect(next?.notBefore).toBeGreaterThan(Date.now());
  const { rows } = await database.pool.query(
    "select attempt, reason, ended_at is not null as ended from attempts where rollout_id = $1 order by 1",
    [rollout?.rolloutId],
  );
  expect(rows).toEqual([
    { attempt: 1, reason: "sandbox lost", ended: true },
    { attempt: 2, reason: null, ended: false },
  ]);
  expect(await poolLedger(database.pool)).toEqual([]);
  await writer.close();
});

test("stopping settles every rollout, frees every lease and lets no late write through; the run ends once", async () => {
  const { runId } = await startPlannedRun(database.pool);
  const writer = new BatchWriter(database.pool);
  await act(database.pool, runId, admitAll(await snapshotOf(database.pool, runId), runLease));
  const running = await claimOne(runId);
  expect(await moveRun(database.pool, runId, "stopping", "by hand")).toBe("stopping");
  expect(await moveRun(database.pool, runId, "stopping", "twice")).toBe("stopping");
  const snapshot = await snapshotOf(database.pool, runId);
  const [step] = snapshot.steps;
  const down: Action[] = [
    ...snapshot.rollouts.map(
      ({ rolloutId, attempt }): Action => ({
        do: "settle",
        rolloutId,
        attempt,
        outcome: "cancelled",
        ending: "cancelled",
        reason: "stopped",
      }),
    ),
    { do: "end-step", stepId: step?.stepId ?? "", from: "gathering", to: "cancelled", reason: "stopped" },
    { do: "move-run", from: "stopping", to: "stopped", reason: "by hand" },
  ];
  // A step does not end while one of its rollouts is open.
  expect(await act(database.pool, runId, down.slice(8, 9), snapshot)).toMatchObject({ applied: 0, refused: 1 });
  expect(await act(database.pool, runId, down, snapshot)).toMatchObject({ applied: 10, refused: 0 });
  await expect(writer.write({ ...entryOf(running), to: { move: "next-stage", stage: "run" } })).rejects.toBeInstanceOf(
    FencedError,
  );
  await expect(moveRun(database.pool, runId, "running", null)).rejects.toThrow(/stopped can't become running/);
  expect((await snapshotOf(database.pool, runId)).held).toMatchObject({ initSlot: 0, sandbox: 0 });
  expect(await poolLedger(database.pool)).toEqual([]);
  const last = (await events(runId)).at(-1);
  expect(last?.body).toEqual({ type: "run-status", from: "stopping", to: "stopped", reason: "by hand" });
  await writer.close();
});
