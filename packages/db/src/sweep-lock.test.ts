import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../testing/postgres.ts";
import { withSweepLock } from "./sweep-lock.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("one holder at a time; the next one after it", async () => {
  const { pool } = database;
  let inner: boolean | null = null;
  expect(
    await withSweepLock(pool, async () => {
      inner = await withSweepLock(pool, async () => undefined);
    }),
  ).toBe(true);
  expect(inner).toBe(false);
  expect(await withSweepLock(pool, async () => undefined)).toBe(true);
});

test("work that fails gives the lock up", async () => {
  await expect(withSweepLock(database.pool, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await withSweepLock(database.pool, async () => undefined)).toBe(true);
});

test("a holder whose connection the server ended loses the lock and nothing else", async () => {
  const { pool } = database;
  const taken = await withSweepLock(pool, async () => {
    await pool.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'`,
    );
    expect(await withSweepLock(pool, async () => undefined)).toBe(true);
  });
  expect(taken).toBe(true);
});
