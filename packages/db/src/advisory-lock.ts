/**
 * Work that one process does at a time. The lock lives in a transaction of its own connection: a process that dies gives it up at once,
 * and one that is frozen while it holds it (its connection looks alive) loses it when the server ends the idle transaction.
 */
import type pg from "pg";

export interface AdvisoryLock {
  readonly key: number;
  /** Longer than the work ever takes, shorter than anybody should wait for a frozen process. */
  readonly frozenAfterMs: number;
}

/** Runs `work` while this process holds the lock. @returns false when another process holds it */
export async function withAdvisoryLock(
  pool: pg.Pool,
  { key, frozenAfterMs }: AdvisoryLock,
  work: () => Promise<void>,
): Promise<boolean> {
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
    const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_xact_lock($1) as taken", [key]);
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
