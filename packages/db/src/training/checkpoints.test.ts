/** Whose word on a run's weights counts. */
import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { checkpointAt as at, seedCheckpoint } from "../../testing/seed-checkpoint.ts";
import { seedRollouts } from "../../testing/seed-rollouts.ts";
import { loseCheckpoint, newestCheckpoint, recordCheckpoint } from "./checkpoints.ts";
import { claimPrepare, failPrepare } from "./claim-prepare.ts";
import { claimUpdate, failUpdate } from "./claim-update.ts";
import type { ModelHolder, TrainerHolder } from "./model-holder.ts";
import { takeOutOfUse } from "./remove-checkpoints.ts";
import { setParentVersion } from "./set-parent-version.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const reason = "the other worker took over";

/** A holder of each kind, and what ends its claim. */
const kinds: Record<ModelHolder["kind"], () => Promise<{ holder: ModelHolder; end(): Promise<void> }>> = {
  prepare: async () => {
    const { pool } = database;
    const { runId } = await seedRollouts(pool, { count: 1 });
    const { claim } = (await claimPrepare(pool, runId, "w1")) ?? { claim: 0 };
    return {
      holder: { kind: "prepare", runId, claim },
      end: async () => {
        await failPrepare(pool, { runId, claim, reason, counted: false });
        await claimPrepare(pool, runId, "w2");
      },
    };
  },
  update: async () => {
    const { pool } = database;
    const { runId, stepId } = await seedRollouts(pool, { count: 1 });
    await pool.query("update steps set state = 'updating' where id = $1", [stepId]);
    const { claim } = (await claimUpdate(pool, stepId, "w1")) ?? { claim: 0 };
    return {
      holder: { kind: "update", runId, stepId, claim },
      end: async () => {
        await failUpdate(pool, { stepId, claim, reason, counted: false });
        await claimUpdate(pool, stepId, "w2");
      },
    };
  },
  ended: async () => {
    const { pool } = database;
    const { runId } = await seedRollouts(pool, { count: 1 });
    await pool.query("update runs set status = 'stopped', ended_at = now(), model_id = 'm1' where id = $1", [runId]);
    return {
      holder: { kind: "ended", runId, modelId: "m1", claim: 0 },
      // As after it was set back to a checkpoint.
      end: async () => {
        await pool.query("update runs set status = 'queued', ended_at = null where id = $1", [runId]);
      },
    };
  },
};

describe.each(Object.keys(kinds) as ModelHolder["kind"][])("the %s holder of a model", (kind) => {
  test("records checkpoints and takes them out of use while its claim stands, and nothing afterwards", async () => {
    const { pool } = database;
    const { holder, end } = await kinds[kind]();
    const { runId } = holder;
    const rows = async () =>
      (await pool.query("select version, path, state from checkpoints where run_id = $1 order by version", [runId]))
        .rows;
    const logged = async () => (await pool.query("select seq from events where run_id = $1", [runId])).rows.length;
    for (const version of [1, 2, 3]) await recordCheckpoint(pool, holder, at(version));
    await takeOutOfUse(pool, holder, [1]);
    await end();
    const before = { rows: await rows(), logged: await logged() };
    expect(before.rows.map(({ state }) => state)).toEqual(["pruned", "complete", "complete"]);
    const late = [
      () => recordCheckpoint(pool, holder, at(3, "tinker://m/weights/late")),
      () => recordCheckpoint(pool, holder, at(4)),
      () => takeOutOfUse(pool, holder, [2]),
    ];
    for (const write of late) await expect(write()).rejects.toThrow(FencedError);
    expect({ rows: await rows(), logged: await logged() }).toEqual(before);
  });
});

test("a record that waits behind the takeover of its claim writes nothing", async () => {
  const { pool } = database;
  const { holder } = await kinds.update();
  const taking = await pool.connect();
  await taking.query("begin");
  await taking.query("update steps set claim = claim + 1 where run_id = $1", [holder.runId]);
  const recording = recordCheckpoint(pool, holder, at(1)).then(
    () => "recorded",
    (error: unknown) => error,
  );
  const waiting =
    "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
  await expect.poll(async () => (await pool.query(waiting)).rows[0].n).toBe(1);
  await taking.query("commit");
  taking.release();
  expect(await recording).toBeInstanceOf(FencedError);
  expect(await newestCheckpoint(pool, holder.runId)).toBeNull();
});

describe("a checkpoint that its server can't load", () => {
  const prepared = async () => {
    const { holder, end } = await kinds.prepare();
    return { holder: holder as TrainerHolder, end };
  };

  test("is out of use for its own run, which says so; another run's row under the same path stays", async () => {
    const { pool } = database;
    const { holder } = await prepared();
    const { runId } = holder;
    const fork = await seedRollouts(pool, { count: 1 });
    for (const version of [1, 2]) await seedCheckpoint(pool, runId, at(version));
    await seedCheckpoint(pool, fork.runId, { ...at(0), path: at(2).path });
    for (let times = 0; times < 2; times++)
      await loseCheckpoint(pool, holder, { version: 2, path: at(2).path, reason: "a file is damaged" });
    expect(await newestCheckpoint(pool, runId)).toMatchObject({ version: 1 });
    expect(await newestCheckpoint(pool, fork.runId)).toMatchObject({ version: 0, path: at(2).path });
    const { rows } = await pool.query("select body from events where run_id = $1 and type = 'checkpoint-lost'", [
      runId,
    ]);
    expect(rows.map(({ body }) => EventBody.parse(body))).toEqual([
      { type: "checkpoint-lost", version: 2, name: "v2", reason: "a file is damaged" },
    ]);
  });

  test("stays in use when it was saved anew meanwhile, or when whoever says so has lost its claim", async () => {
    const { pool } = database;
    const { holder, end } = await prepared();
    await seedCheckpoint(pool, holder.runId, at(1, "tinker://m/weights/anew"));
    await loseCheckpoint(pool, holder, { version: 1, path: at(1).path, reason });
    await end();
    const lost = { version: 1, path: "tinker://m/weights/anew", reason };
    await expect(loseCheckpoint(pool, holder, lost)).rejects.toThrow(FencedError);
    await expect(setParentVersion(pool, holder, 1)).rejects.toThrow(FencedError);
    expect(await newestCheckpoint(pool, holder.runId)).toMatchObject({ path: "tinker://m/weights/anew" });
  });
});
