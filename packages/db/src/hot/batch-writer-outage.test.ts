import { BoundaryError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, startTestPostgres, type TestDatabase } from "../../testing/postgres.ts";
import { seedRollouts, turnEntry } from "../../testing/seed-rollouts.ts";
import { BatchWriter } from "./batch-writer.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function log(runId: string): Promise<number[]> {
  const { rows } = await database.pool.query("select seq from events where run_id = $1 order by seq", [runId]);
  return rows.map((row) => row.seq);
}

test("connections cut at any moment lose nothing and write nothing twice", async () => {
  const run = await seedRollouts(database.pool, { count: 48 });
  const writer = new BatchWriter(database.pool, { maxEntries: 16 });
  let cutting = true;
  const cutter = (async () => {
    while (cutting) {
      await database.pool
        .query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
        )
        .catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  })();
  const seqs = await Promise.all(
    run.rollouts.map(async (rollout) => {
      const mine: number[] = [];
      for (let turn = 0; turn < 10; turn++) mine.push((await writer.write(turnEntry(rollout, turn))).seq);
      return mine;
    }),
  );
  cutting = false;
  await cutter;
  const all = Array.from({ length: 480 }, (_, place) => place + 1);
  expect(seqs.flat().sort((a, b) => a - b)).toEqual(all);
  expect(await log(run.runId)).toEqual(all);
  await writer.close();
});

test("a server that crashes and comes back: every write that was answered is there, once", async () => {
  const server = await startTestPostgres();
  const run = await seedRollouts(database.pool, { count: 32 });
  const writer = new BatchWriter(database.pool, { maxEntries: 8, retryForMs: 20_000 });
  const writing = Promise.all(
    run.rollouts.map(async (rollout) => {
      for (let turn = 0; turn < 20; turn++) await writer.write(turnEntry(rollout, turn));
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 60));
  await server.restart();
  await writing;
  expect(await log(run.runId)).toEqual(Array.from({ length: 640 }, (_, place) => place + 1));
  const { rows } = await database.pool.query(
    "select count(*) as turns from transitions t join rollouts r on r.id = t.rollout_id where r.run_id = $1",
    [run.runId],
  );
  expect(rows[0].turns).toBe(640);
  await writer.close();
});

test("a server that stays away: the write is refused as infrastructure, to be tried again, and trying again succeeds", async () => {
  const server = await startTestPostgres();
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts;
  if (!rollout) throw new Error("no rollout");
  const writer = new BatchWriter(database.pool, { retryForMs: 300 });
  await server.crash();
  const failure = await writer.write(turnEntry(rollout, 0)).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BoundaryError);
  expect(failure).toMatchObject({ boundary: "infrastructure", retryable: true });
  await server.start();
  expect(await writer.write(turnEntry(rollout, 0))).toEqual({ seq: 1 });
  expect(await log(run.runId)).toEqual([1]);
  await writer.close();
});
