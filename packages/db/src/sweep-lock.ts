/**
 * One process sweeps at a time. The lock lives in a transaction of its own connection: a process that dies gives it up at once,
 * and one that is frozen while it holds it (its connection looks alive) loses it when the server ends the idle transaction.
 */
import type pg from "pg";

const lockKey = 7_241_905_113;
/** Longer than any sweep, shorter than anybody should wait for a frozen process. */
const frozenAfterMs = 15_000;

/** Runs `work` while this process holds the sweep lock. @returns false when another process holds it */
export async function withSweepLock(pool: pg.Pool, work: () => Promise<void>): Promise<boolean> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // The server may end this connection while the work is under way on others; without a listener that ends the process.
  const onBroken = (error: Error): void => {
    broken = error;
  };
  client.on("error", onBroken);
  try {
    await client.query("begin");
    await client.query(`set local idle_in_transaction_session_timeout = ${frozenAfterMs}`);
    const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_xact_lock($1) as taken", [lockKey]);
    const taken = rows[0]?.taken === true;
    if (taken) await work();
    return taken;
  } finally {
    // A connection that may still hold the lock is closed, not given back.
    await client.query("rollback").catch(onBroken);
    client.off("error", onBroken);
    client.release(broken);
  }
}
