/** What a plan sees of a run beside its rollouts and groups: limits, versions, starts, the engine. */
import { EventBody } from "@rolldeck/contracts/events";
import type { Action, NewLease } from "@rolldeck/contracts/plan";
import { afterAll, beforeAll, expect, test } from "vitest";
import { act, admitAll, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { reportEngineLoad, supervisedGpuWorker } from "../gpu-workers.ts";
import { BatchWriter } from "../hot/batch-writer.ts";
import { claimStage } from "../hot/claim-stage.ts";

let database: TestDatabase;
let writer: BatchWriter;
beforeAll(async () => {
  database = await createTestDatabase();
  writer = new BatchWriter(database.pool);
});
afterAll(async () => {
  await writer.close();
  await database.drop();
});

const leases: NewLease[] = [{ resource: "initSlot", until: "init" }];
const look = (runId: string) => snapshotOf(database.pool, runId);
async function bodies(runId: string): Promise<EventBody[]> {
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [runId]);
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, place) => place + 1));
  return rows.map((row) => EventBody.parse(row.body));
}
async function claimFirst(runId: string, rolloutId: string) {
  const row = (await look(runId)).rollouts.find((rollout) => rollout.rolloutId === rolloutId);
  const claimed = row && (await claimStage(database.pool, { ...row, workerId: "w1" }));
  if (!claimed) throw new Error("not claimed");
  return { kind: "edge", runId, rolloutId, attempt: 1, claim: claimed.claim, stage: claimed.stage } as const;
}

test("the number of rollouts that may run moves from what the planner saw", async () => {
  const { runId } = await startPlannedRun(database.pool);
  const move = (from: number | null, to: number | null): Action => ({ do: "set-run-limit", from, to, reason: "tests" });
  const both = await Promise.all([
    act(database.pool, runId, [move(null, 8)]),
    act(database.pool, runId, [move(null, 8)]),
  ]);
  expect(both.map(({ applied }) => applied).sort()).toEqual([0, 1]);
  const snapshot = await look(runId);
  expect(snapshot.runLimit).toMatchObject({ limit: 8, reason: "tests" });
  expect(snapshot.runLimit?.since).toBeLessThanOrEqual(snapshot.now);
  await act(database.pool, runId, [move(8, null)]);
  expect((await look(runId)).runLimit).toBeNull();
  expect((await bodies(runId)).slice(-2)).toMatchObject([
    { type: "run-limit-changed", from: null, to: 8 },
    { type: "run-limit-changed", from: 8, to: null },
  ]);
});

test("the first version of an attempt is the one that served when its run stage was first taken (fault 47)", async () => {
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 1 });
  const first = async () => (await look(runId)).rollouts[0];
  const serve = (version: number) =>
    database.pool.query("update runs set serving_version = $2 where id = $1", [runId, version]);
  await serve(3);
  await act(database.pool, runId, admitAll(await look(runId)));
  const rolloutId = (await first())?.rolloutId ?? "";
  await writer.write({ ...(await claimFirst(runId, rolloutId)), to: { move: "next-stage", stage: "run" } });
  expect((await first())?.firstVersion).toBeNull();
  await serve(4);
  await act(database.pool, runId, admitAll(await look(runId)));
  await claimFirst(runId, rolloutId);
  await serve(5);
  await database.pool.query("update rollouts set lease_until = now() - interval '1 second' where id = $1", [rolloutId]);
  await claimFirst(runId, rolloutId);
  expect((await first())?.firstVersion).toBe(4);
  await act(database.pool, runId, [{ do: "retry", rolloutId, attempt: 1, notBefore: 0, reason: "tests" }]);
  expect((await first())?.firstVersion).toBeNull();
});

test("where starts have a rate, those of the last minute are told, those that nobody has taken yet included", async () => {
  const slow = { dispatcher: { startsPerSecond: 1 } };
  const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 3, config: slow });
  expect((await look(runId)).recentStarts).toEqual([]);
  const plan = admitAll(await look(runId), leases);
  await act(database.pool, runId, plan.slice(0, 2));
  const [one] = (await look(runId)).rollouts;
  await claimFirst(runId, one?.rolloutId ?? "");
  const snapshot = await look(runId);
  expect(snapshot.recentStarts).toHaveLength(2);
  for (const at of snapshot.recentStarts ?? []) expect(at).toBeLessThanOrEqual(snapshot.now);
  await database.pool.query("update stage_spans set started_at = now() - interval '61 seconds' where run_id = $1", [
    runId,
  ]);
  // Only the one that is on its way still.
  expect((await look(runId)).recentStarts).toHaveLength(1);
});

test("the newest reading of the engine that samples is told, while it is there", async () => {
  const { runId } = await startPlannedRun(database.pool);
  expect((await look(runId)).engine).toBeNull();
  const load = { at: 2_000, cacheUse: 0.5, running: 8, waiting: 1 };
  await reportEngineLoad(database.pool, supervisedGpuWorker, load);
  await reportEngineLoad(database.pool, supervisedGpuWorker, { ...load, at: 1_000, waiting: 9 });
  await reportEngineLoad(database.pool, supervisedGpuWorker, { ...load, at: 3_499, waiting: 9 });
  expect((await look(runId)).engine).toEqual(load);
  await reportEngineLoad(database.pool, supervisedGpuWorker, { ...load, at: 3_500 });
  expect((await look(runId)).engine?.at).toBe(3_500);
  await database.pool.query("update gpu_workers set state = 'lost'");
  expect((await look(runId)).engine).toBeNull();
});
