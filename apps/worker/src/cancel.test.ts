/** Parts of a run that are cancelled by hand while workers are at them: they end, the rest goes on, and nothing of them is trained. */
import { cancelRollout } from "@rolldeck/db/hot/cancel-rollout";
import { cancelStep } from "@rolldeck/db/hot/cancel-step";
import { setAsideGroups } from "@rolldeck/db/hot/set-aside";
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { afterEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});
const made = (): Rig => {
  if (rig === null) throw new Error("no rig");
  return rig;
};
/** The id of a row of the run's first step. */
const idOf = async (table: "steps" | "groups" | "rollouts", runId: string): Promise<string> =>
  String(await made().value(`select min(id) from ${table} where run_id = $1`, [runId]));
const turns = async (): Promise<number> => Number(await made().value("select count(*)::int from transitions"));

test("a rollout whose call hangs: the request is closed and its worker lets go of it, its siblings go on", async () => {
  rig = await startRig({ delayMs: 600_000 });
  const runId = await made().launch(smokeConfig());
  await made().until("calls hang", async () => made().gpu.stats.waiting === 16);
  expect(await cancelRollout(made().database.pool, await idOf("rollouts", runId), "by hand")).toEqual({
    runId,
    cancelled: 1,
  });
  await made().until("its request is closed", async () => made().gpu.stats.cancelled === 1);
  await made().until("nobody holds it", async () => made().workers.every(({ context }) => context.leases.size === 15));
  expect(await made().value("select count(*)::int from rollouts where state = 'active'")).toBe(15);
  expect(await poolLedger(made().database.pool)).toEqual([]);
});

test("a step: its rollouts end, its number stays unused, and the run trains the next", async () => {
  rig = await startRig({ delayMs: 400 });
  const runId = await made().launch(smokeConfig({ budget: { steps: 2 } }));
  await made().until("turns", async () => (await turns()) >= 8);
  const stepId = await idOf("steps", runId);
  const { cancelled } = await cancelStep(made().database.pool, stepId, "by hand");
  expect(cancelled).toBeGreaterThan(0);
  made().workers[0]?.context.requestReconcile(runId);
  expect(await made().untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await made().value("select array_agg(state order by step) from steps where run_id = $1", [runId])).toEqual([
    "cancelled",
    "done",
  ]);
  expect(await made().value("select count(*)::int from training_rows where step_id = $1", [stepId])).toBe(0);
  expect(await made().value("select serving_version from runs where id = $1", [runId])).toBe(2);
  // Versions of what was trained are known, and on policy.
  const stale = "select value from metric_points where run_id = $1 and name = 'staleness/max' and step = 2";
  expect(await made().value(stale, [runId])).toBe(0);
  expect(await poolLedger(made().database.pool)).toEqual([]);
});

test("a group: the step trains what is left, none of it", async () => {
  rig = await startRig({ delayMs: 400 });
  const runId = await made().launch(smokeConfig({ budget: { steps: 1 } }));
  await made().until("turns", async () => (await turns()) >= 1);
  const [groupId, stepId] = [await idOf("groups", runId), await idOf("steps", runId)];
  const own = "select count(*)::int from transitions t join rollouts r on r.id = t.rollout_id where r.group_id = $1";
  await made().until("turns of the group", async () => Number(await made().value(own, [groupId])) > 0);
  const aside = { groupId, stepId, as: "cancelled", reason: "by hand" } as const;
  expect((await setAsideGroups(made().database.pool, runId, [aside])).made).toEqual([aside]);
  made().workers[0]?.context.requestReconcile(runId);
  expect(await made().untilStatus(runId, "completed", "failed")).toBe("completed");
  const trained = `select array_agg(distinct r.group_id = $2) from training_rows t join rollouts r on r.id = t.rollout_id
    where t.run_id = $1`;
  expect(await made().value(trained, [runId, groupId])).toEqual([false]);
  // What it did stays readable.
  expect(Number(await made().value(own, [groupId]))).toBeGreaterThan(0);
});
