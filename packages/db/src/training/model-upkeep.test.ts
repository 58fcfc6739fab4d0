import { NotFoundError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import type { checkpointMetrics } from "@rolldeck/contracts/run-config";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { checkpointAt as at, seedCheckpoint } from "../../testing/seed-checkpoint.ts";
import { seedRollouts } from "../../testing/seed-rollouts.ts";
import { servingsLock } from "../servings-lock.ts";
import { checkpointFacts } from "./checkpoint-facts.ts";
import { newestCheckpoint, recordCheckpoint } from "./checkpoints.ts";
import { claimPrepare } from "./claim-prepare.ts";
import { forgetModel } from "./forget-model.ts";
import type { ModelHolder } from "./model-holder.ts";
import { pinCheckpoint } from "./pin-checkpoint.ts";
import { abandonFiles, markDeleteFailed, markRemoved, outOfUse, takeOutOfUse } from "./remove-checkpoints.ts";
import { writeMetrics } from "./write-metrics.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const seed = async (versions: readonly number[], path?: (version: number) => string): Promise<string> => {
  const { runId } = await seedRollouts(database.pool, { count: 1 });
  for (const version of versions) await seedCheckpoint(database.pool, runId, at(version, path?.(version)));
  const { claim } = (await claimPrepare(database.pool, runId, "w1")) ?? { claim: 0 };
  holders.set(runId, { kind: "prepare", runId, claim });
  return runId;
};
/** Who takes them out of use; each run has one. */
const holders = new Map<string, ModelHolder>();
const holder = (runId: string): ModelHolder => {
  const found = holders.get(runId);
  if (found === undefined) throw new Error(`${runId} was not seeded here`);
  return found;
};
const notes = async (runId: string): Promise<string[]> => {
  const { rows } = await database.pool.query(
    "select body ->> 'message' as message from events where run_id = $1 and type = 'note' order by seq",
    [runId],
  );
  return rows.map(({ message }) => message);
};
const stateOf = async (runId: string, version: number): Promise<string> => {
  const { rows } = await database.pool.query("select state from checkpoints where run_id = $1 and version = $2", [
    runId,
    version,
  ]);
  return rows[0]?.state;
};
const taken = async (runId: string) => (await outOfUse(database.pool, runId)).map(({ version }) => version);

describe("removing checkpoints", () => {
  test("takes what it is told out of use, with an event each, and never the newest or what the run began with", async () => {
    const { pool } = database;
    const runId = await seed([0, 10, 20, 30]);
    await takeOutOfUse(pool, holder(runId), [0, 10, 20, 30]);
    expect(await taken(runId)).toEqual([10, 20]);
    expect(await newestCheckpoint(pool, runId, 29)).toMatchObject({ version: 0 });
    expect(await newestCheckpoint(pool, runId)).toMatchObject({ version: 30 });
    await takeOutOfUse(pool, holder(runId), [10, 20]);
    const { rows } = await pool.query(
      "select body from events where run_id = $1 and type = 'checkpoint-removed' order by seq",
      [runId],
    );
    expect(rows.map(({ body }) => EventBody.parse(body))).toEqual(
      [10, 20].map((version) => ({ type: "checkpoint-removed", version, name: `v${version}`, bytes: 7 })),
    );
  });

  test("a crash between row and file leaves what is to be deleted known, until it is", async () => {
    const { pool } = database;
    const runId = await seed([1, 2, 3]);
    await takeOutOfUse(pool, holder(runId), [1, 2]);
    const [first] = await outOfUse(pool, runId);
    if (first) await markRemoved(pool, runId, first);
    expect(await taken(runId)).toEqual([2]);
  });

  test("files whose deletion fails are tried again later, and after the last try the log says once that they stay", async () => {
    const { pool } = database;
    const runId = await seed([1, 2]);
    await takeOutOfUse(pool, holder(runId), [1]);
    const gone = { ...at(1) };
    await markDeleteFailed(pool, runId, gone, "the disk is read-only");
    expect(await taken(runId)).toEqual([]);
    const wait =
      "select delete_after - now() > interval '1 second' as later from checkpoints where run_id = $1 and version = 1";
    expect((await pool.query(wait, [runId])).rows).toEqual([{ later: true }]);
    await pool.query("update checkpoints set delete_after = now() where run_id = $1", [runId]);
    expect(await taken(runId)).toEqual([1]);
    for (let tries = 0; tries < 12; tries++) await markDeleteFailed(pool, runId, gone, "the disk is read-only");
    await pool.query("update checkpoints set delete_after = now() where run_id = $1", [runId]);
    expect(await taken(runId)).toEqual([]);
    expect(await stateOf(runId, 1)).toBe("abandoned");
    expect(await notes(runId)).toEqual([expect.stringMatching(/checkpoint v1.*failed 10 times.*read-only/u)]);
  });

  test("on a server that can't delete, files stay, are not asked for again, and the log says so once", async () => {
    const { pool } = database;
    const runId = await seed([1, 2, 3], (version) => `tinker://kept/weights/${version}`);
    await abandonFiles(pool, runId);
    expect(await notes(runId)).toEqual([]);
    for (const version of [1, 2]) {
      await takeOutOfUse(pool, holder(runId), [version]);
      await abandonFiles(pool, runId);
      expect(await taken(runId)).toEqual([]);
      expect(await stateOf(runId, version)).toBe("abandoned");
    }
    expect(await notes(runId)).toEqual([expect.stringContaining("delete them there")]);
  });

  test("leaves one that begins to be served in the same moment", async () => {
    const { pool } = database;
    const runId = await seed([1, 2, 3]);
    const starting = await pool.connect();
    await starting.query("begin");
    await starting.query("select pg_advisory_xact_lock($1)", [servingsLock]);
    await starting.query(
      "insert into servings (id, run_id, version, key_hash, started_by) values ('underway1', $1, 2, 'none', 'me')",
      [runId],
    );
    const removing = takeOutOfUse(pool, holder(runId), [1, 2]);
    const waiting = `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`;
    await expect.poll(async () => (await pool.query(waiting)).rows[0].n).toBe(1);
    await starting.query("commit");
    starting.release();
    await removing;
    expect(await taken(runId)).toEqual([1]);
  });

  test("a version that is saved again is in use again", async () => {
    const { pool } = database;
    const runId = await seed([1, 2]);
    await takeOutOfUse(pool, holder(runId), [1]);
    await recordCheckpoint(pool, holder(runId), at(1, "tinker://m/weights/again"));
    expect(await newestCheckpoint(pool, runId, 1)).toMatchObject({ path: "tinker://m/weights/again" });
    expect(await taken(runId)).toEqual([]);
  });

  test("keeps one that is pinned, until it is no longer", async () => {
    const { pool } = database;
    const runId = await seed([1, 2]);
    await pinCheckpoint(pool, { runId, version: 1 }, true, "the owner");
    await pinCheckpoint(pool, { runId, version: 1 }, true, "the owner");
    await takeOutOfUse(pool, holder(runId), [1]);
    expect(await taken(runId)).toEqual([]);
    expect(await checkpointFacts(pool, runId, null)).toMatchObject([{ version: 2 }, { version: 1, pinned: true }]);
    await pinCheckpoint(pool, { runId, version: 1 }, false, "the owner");
    await takeOutOfUse(pool, holder(runId), [1]);
    expect(await taken(runId)).toEqual([1]);
    const { rows } = await pool.query(
      "select count(*)::int as n from events where run_id = $1 and type = 'checkpoint-pinned'",
      [runId],
    );
    expect(rows).toEqual([{ n: 2 }]);
    await expect(pinCheckpoint(pool, { runId, version: 1 }, true, "the owner")).rejects.toThrow(NotFoundError);
  });

  test("keeps one that another run began with, or names and has not begun with yet", async () => {
    const { pool } = database;
    const runId = await seed([1, 2, 3, 4], (version) => `tinker://own/weights/${version}`);
    const other = await seed([]);
    await seedCheckpoint(pool, other, at(0, "tinker://own/weights/1"));
    const name = "update runs set config = jsonb_set(config, '{model,startFrom}', $2::jsonb) where id = $1";
    await pool.query(name, [other, JSON.stringify({ run: runId, version: 3 })]);
    await takeOutOfUse(pool, holder(runId), [1, 2, 3]);
    expect(await taken(runId)).toEqual([2]);
    const parents = (await checkpointFacts(pool, runId, null)).filter(({ isParent }) => isParent);
    expect(parents.map(({ version }) => version)).toEqual([3, 1]);
  });

  test("measures a version by its own evaluation, or by the rewards of the step it sampled", async () => {
    const { pool } = database;
    const runId = await seed([1, 2]);
    await writeMetrics(pool, runId, 1, { "evaluate/success": 0.5, "reward/mean": 0.1 });
    await writeMetrics(pool, runId, 2, { "reward/mean": 0.2, "evaluate/success": Number.NaN });
    await pool.query("update steps set step = 3 where run_id = $1", [runId]);
    const measures = async (metric: (typeof checkpointMetrics)[number]) => {
      const facts = await checkpointFacts(pool, runId, { count: 1, metric, better: "higher" });
      return facts.map(({ version, measure, awaited }) => [version, measure, awaited]);
    };
    expect(await measures("evaluate/success")).toEqual([
      [2, null, false],
      [1, 0.5, false],
    ]);
    // Step 3, which version 2 samples, is still gathering.
    expect(await measures("reward/mean")).toEqual([
      [2, null, true],
      [1, 0.2, false],
    ]);
  });
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
