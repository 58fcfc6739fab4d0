/**
 * Starting a serving and removing checkpoints, one after the other: each looks at what the other writes, and two statements at once
 * would look at the moment before. The lock is the connection's own, not a transaction's, so every statement under it stands alone.
 */
import type pg from "pg";

export const servingsLock = 7_241_905_115;

/** Waits for its turn. @param work one statement on the client that it is given */
export async function withServingsLock<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  // A connection that may still hold the lock is closed, not given back.
  let held = true;
  try {
    await client.query("select pg_advisory_lock($1)", [servingsLock]);
    const done = await work(client);
    await client.query("select pg_advisory_unlock($1)", [servingsLock]);
    held = false;
    return done;
  } finally {
    client.release(held);
  }
}
