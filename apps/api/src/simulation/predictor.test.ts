/** Predictions over real rows: from what they are made, when, and what a run's schedule says of them. */
import { Rolldeck } from "@rolldeck/client/rolldeck";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestApi, type TestApi } from "../../testing/start-api.ts";
import { Predictor } from "./predictor.ts";

let api: TestApi;
let sdk: Rolldeck;
let predictor: Predictor;
const errors: unknown[] = [];
const bounds = { init: 8, run: 12, evaluate: 4 };
const shape = { groups: 6, groupSize: 4, bounds };
const pool = () => api.database.pool;
beforeAll(async () => {
  // Only the one made here looks.
  api = await startTestApi({}, undefined, { predictEveryMs: 3_600_000 });
  sdk = new Rolldeck({ url: api.url, token: api.ownerToken });
  predictor = new Predictor({
    pool: pool(),
    factsOf: () => ({ sandbox: "none", gradeInPlace: false }),
    onError: (error) => errors.push(error),
  });
});
afterAll(async () => {
  await predictor.close();
  await api.close();
});

const configOf = (change: Partial<RunConfigInput> = {}): Partial<RunConfigInput> => ({
  dispatcher: { bounds },
  algorithm: { groupsPerStep: 6, groupSize: 4 },
  budget: { steps: 5 },
  ...change,
});
/** Began so long ago; one of more than two hours ago ended before anybody looked. */
async function begun(config: Partial<RunConfigInput>, hoursAgo: number): Promise<string> {
  const runId = await seedRun(pool(), {
    config,
    endedAt: hoursAgo > 2 ? new Date(Date.now() - 7_200_000).toISOString() : null,
  });
  await pool().query("update runs set started_at = now() - $2 * interval '1 hour' where id = $1", [runId, hoursAgo]);
  return runId;
}
const stored = async (runId: string) =>
  (await pool().query("select prediction from predictions where run_id = $1", [runId])).rows[0]?.prediction ?? null;

test("a run that nobody has seen the like of is predicted from its own first step, once that is over", async () => {
  const runId = await begun(configOf({ model: { name: "first-of-its-kind" } }), 0.2);
  await predictor.look();
  expect(await stored(runId)).toBeNull();
  expect((await sdk.readSchedule({ runId })).prediction).toBeNull();
  await seedSchedule(pool(), runId, { ...shape, step: 1, elapsedS: 40 });
  await predictor.look();
  expect(await stored(runId)).toBeNull();
  await pool().query("delete from steps where run_id = $1", [runId]);
  // Over, and another one after it.
  const { lastS } = await seedSchedule(pool(), runId, { ...shape, step: 1, elapsedS: 400 });
  await seedSchedule(pool(), runId, { ...shape, step: 2 });
  await predictor.look();
  expect(await stored(runId)).toMatchObject({ basis: { from: "first-steps", rollouts: 24, step: 1 } });
  const { prediction, toMs } = await sdk.readSchedule({ runId, step: 2 });
  expect(prediction).toMatchObject({
    ...{ dispatcher: "pipeline", bounds, seeds: 4, steps: 5, changed: false },
    taken: { step: [1, 2], forecast: [false, true] },
    all: { steps: 1 },
  });
  const [, second = 0] = prediction?.taken.actualMs ?? [];
  expect(second).toBeCloseTo(toMs, -1);
  expect(second).toBeCloseTo((lastS + 20) * 1000, -3);
  expect(prediction?.all?.error).toBeCloseTo((prediction?.stepMs.mean ?? 0) / second - 1, 6);
  // The same durations, the same bounds: what is predicted is what was, give or take the luck of a draw.
  expect(Math.abs(prediction?.all?.error ?? 1)).toBeLessThan(0.35);
  expect(prediction?.makespanMs).toBeCloseTo(5 * (prediction?.stepMs.mean ?? 0), 3);
  for (const waits of [prediction?.waits, prediction?.actualWaits])
    expect(Object.values(waits ?? {}).every((share) => share >= 0 && share < 1)).toBe(true);
  expect(prediction?.actualWaits?.evaluate).toBeGreaterThan(0);
});

test("a run like earlier ones is predicted as it begins, from those alone, and once", async () => {
  const model = { name: "known" };
  const taskSets = [{ name: "key-chain", options: { length: 3 } }];
  const earlier = await begun(configOf({ model, taskSets }), 3);
  await seedSchedule(pool(), earlier, { ...shape, step: 1, elapsedS: 3_600 });
  // Other options, another model, another backend, and what began later, say nothing.
  for (const other of [
    { model, taskSets: [{ name: "key-chain", options: { length: 9 } }] },
    { model: { name: "other" }, taskSets },
    { model, taskSets, backend: { server: "far" } },
  ])
    await seedSchedule(pool(), await begun(configOf(other), 3), { ...shape, step: 1, elapsedS: 3_600 });
  const later = await begun(configOf({ model, taskSets, stepSource: "driven" }), 0.1);
  await seedSchedule(pool(), later, { ...shape, step: 1, elapsedS: 300 });
  // Twice as many rollouts a step as the earlier one had.
  const algorithm = { groupsPerStep: 12, groupSize: 4 };
  const runId = await begun(configOf({ model, taskSets, algorithm }), 0.5);
  await predictor.look();
  const first = await stored(runId);
  expect(first).toMatchObject({ basis: { from: "earlier-runs", rollouts: 24, runIds: [earlier] }, steps: 5 });
  await seedSchedule(pool(), runId, { ...shape, groups: 12, step: 1 });
  await predictor.look();
  expect(await stored(runId)).toEqual(first);
  const { prediction } = await sdk.readSchedule({ runId });
  expect(prediction).toMatchObject({ taken: { step: [1], forecast: [true] }, all: { steps: 1 } });
  expect(prediction?.stepMs.low).toBeLessThanOrEqual(prediction?.stepMs.mean ?? 0);
  // Its update is that of twice the rollouts: 40 s of the predicted step.
  expect(prediction?.stepMs.mean).toBeGreaterThan(40_000);
  await sdk.changeDispatcher({ runId, bounds: { run: 99 } });
  expect((await sdk.readSchedule({ runId })).prediction?.changed).toBe(true);
  expect((await sdk.readSchedule({ runId, purpose: "evaluate" })).prediction).toBeNull();
});

test("a task set that was never seen leaves the run to its own first step", async () => {
  const model = { name: "half-known" };
  const one = { name: "key-chain", options: { length: 3 } };
  const earlier = await begun(configOf({ model, taskSets: [one] }), 3);
  await seedSchedule(pool(), earlier, { ...shape, step: 1, elapsedS: 3_600 });
  const runId = await begun(configOf({ model, taskSets: [one, { name: "key-chain", options: { length: 4 } }] }), 0.5);
  await predictor.look();
  expect(await stored(runId)).toBeNull();
  await seedSchedule(pool(), runId, { ...shape, step: 1 });
  await predictor.look();
  expect(await stored(runId)).toMatchObject({ basis: { from: "first-steps", step: 1 } });
});

test("runs that have not begun, and those of an outside trainer, are left alone", async () => {
  const model = { name: "known" };
  const taskSets = [{ name: "key-chain", options: { length: 3 } }];
  const queued = await seedRun(pool(), { config: configOf({ model, taskSets }), status: "queued" });
  const driven = await begun(configOf({ model, taskSets, stepSource: "driven" }), 0.1);
  await predictor.look();
  expect([await stored(queued), await stored(driven)]).toEqual([null, null]);
});

test("one that takes too long is said once, and leaves others alone", async () => {
  const hasty = new Predictor({
    ...{ pool: pool(), factsOf: () => ({ sandbox: "none", gradeInPlace: false }) as const, limitMs: 1 },
    onError: (error, runId) => said.push([String(error), runId]),
  });
  const said: unknown[] = [];
  const runId = await begun(configOf({ model: { name: "slow" } }), 0.2);
  await seedSchedule(pool(), runId, { ...shape, step: 1 });
  await hasty.look();
  await hasty.look();
  expect(said).toEqual([["Error: the prediction was not over after 0.001 s", runId]]);
  await predictor.look();
  expect(await stored(runId)).not.toBeNull();
  await hasty.close();
  expect(errors).toEqual([]);
});

test("the server looks by itself", async () => {
  const server = await startTestApi({}, undefined, { predictEveryMs: 100 });
  try {
    const other = await seedRun(server.database.pool, { config: configOf() });
    await server.database.pool.query("update runs set started_at = now() where id = $1", [other]);
    await seedSchedule(server.database.pool, other, { ...shape, step: 1 });
    const there = () => server.database.pool.query("select 1 from predictions where run_id = $1", [other]);
    await expect.poll(async () => (await there()).rowCount, { timeout: 30_000 }).toBe(1);
  } finally {
    await server.close();
  }
}, 60_000);
