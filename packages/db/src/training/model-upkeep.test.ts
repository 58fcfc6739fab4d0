import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedRollouts } from "../../testing/seed-rollouts.ts";
import { newestCheckpoint, recordCheckpoint } from "./checkpoints.ts";
import { forgetModel } from "./forget-model.ts";
import { pruneCheckpoints } from "./prune-checkpoints.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("prunes all but the newest and leaves the warm start", async () => {
  const { pool } = database;
  const { runId } = await seedRollouts(pool, { count: 1 });
  for (const version of [0, 10, 20, 30, 40]) {
    await recordCheckpoint(pool, runId, {
      version,
      name: `v${version}`,
      path: `tinker://m/weights/v${version}`,
      bytes: 1,
    });
  }
  expect((await pruneCheckpoints(pool, runId, 2)).map(({ version }) => version).sort()).toEqual([10, 20]);
  expect(await pruneCheckpoints(pool, runId, 2)).toEqual([]);
  expect(await newestCheckpoint(pool, runId, 29)).toMatchObject({ version: 0 });
  expect(await newestCheckpoint(pool, runId)).toMatchObject({ version: 40 });
});

test("keeps a checkpoint that another run began with", async () => {
  const { pool } = database;
  const [own, other] = await Promise.all([seedRollouts(pool, { count: 1 }), seedRollouts(pool, { count: 1 })]);
  const at = (version: number, path: string) => ({ version, name: path, path, bytes: 1 });
  for (const version of [1, 2, 3])
    await recordCheckpoint(pool, own.runId, at(version, `tinker://own/weights/${version}`));
  await recordCheckpoint(pool, other.runId, at(0, "tinker://own/weights/1"));
  expect((await pruneCheckpoints(pool, own.runId, 1)).map(({ version }) => version)).toEqual([2]);
  expect(await newestCheckpoint(pool, own.runId, 1)).toMatchObject({ version: 1 });
  await recordCheckpoint(pool, own.runId, at(4, "tinker://own/weights/4"));
  const named = JSON.stringify({ run: own.runId, version: 3 });
  const name = "update runs set config = jsonb_set(config, '{model,startFrom}', $2::jsonb) where id = $1";
  await pool.query(name, [other.runId, named]);
  expect(await pruneCheckpoints(pool, own.runId, 1)).toEqual([]);
});

test("forgets the model it was asked to forget, once, and wakes the run", async () => {
  const { pool } = database;
  const { runId } = await seedRollouts(pool, { count: 1 });
  await pool.query("update runs set model_id = 'm2', model_boot_id = 'b' where id = $1", [runId]);
  expect(await forgetModel(pool, runId, "m1")).toBe(false);
  expect(await forgetModel(pool, runId, "m2")).toBe(true);
  expect(await forgetModel(pool, runId, "m2")).toBe(false);
  const { rows } = await pool.query("select model_boot_id, wake - handled_wake as behind from runs where id = $1", [
    runId,
  ]);
  expect(rows).toEqual([{ model_boot_id: null, behind: 1 }]);
});
