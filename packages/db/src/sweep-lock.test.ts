import { expect, test } from "vitest";
import { createTestDatabase } from "../testing/postgres.ts";
import { createPool } from "./connect.ts";
import { withSweepLock } from "./sweep-lock.ts";
import { dropDeadWorkers, heartbeat, removeWorker } from "./workers.ts";

test("one process sweeps at a time; the lock goes with the work, with an error in it and with the holder's connection", async () => {
  const database = await createTestDatabase();
  const other = createPool(database.url);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let holding = Promise.resolve(false);
  await new Promise<void>((started) => {
    holding = withSweepLock(database.pool, () => {
      started();
      return released;
    });
  });
  expect(await withSweepLock(other, async () => undefined)).toBe(false);
  release();
  expect(await holding).toBe(true);
  await expect(withSweepLock(other, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await withSweepLock(database.pool, async () => undefined)).toBe(true);

  const cut = withSweepLock(other, async () => {
    await database.pool.query(
      "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()",
    );
  });
  // The work went on elsewhere; only the lock is gone.
  expect(await cut).toBe(true);
  await expect.poll(() => withSweepLock(database.pool, async () => undefined)).toBe(true);
  await other.end();
  await database.drop();
});

test("workers are on the page while they live", async () => {
  const database = await createTestDatabase();
  await heartbeat(database.pool, "w1", 3);
  await heartbeat(database.pool, "w1", 5);
  await heartbeat(database.pool, "w2", 0);
  await heartbeat(database.pool, "w3", 1);
  await removeWorker(database.pool, "w2");
  await database.pool.query("update workers set last_seen_at = now() - interval '2 minutes' where id = 'w3'");
  await dropDeadWorkers(database.pool);
  expect((await database.pool.query("select id, stages from workers")).rows).toEqual([{ id: "w1", stages: 5 }]);
  await database.drop();
});
