/** One process sweeps at a time. The lock lives with its connection, so a process that dies never keeps it. */
import type pg from "pg";

const lockKey = 7_241_905_113;

/** Runs `work` while this process holds the sweep lock. @returns false when another process holds it */
export async function withSweepLock(pool: pg.Pool, work: () => Promise<void>): Promise<boolean> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1) as taken", [lockKey]);
    if (!rows[0]?.taken) return false;
    try {
      await work();
    } finally {
      await client.query("select pg_advisory_unlock($1)", [lockKey]);
    }
    return true;
  } catch (error) {
    if (error instanceof Error) broken = error;
    throw error;
  } finally {
    // A connection that may still hold the lock is closed, not given back.
    client.release(broken);
  }
}
