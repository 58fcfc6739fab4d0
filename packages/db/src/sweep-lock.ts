/** One process sweeps at a time. */
import type pg from "pg";
import { withAdvisoryLock } from "./advisory-lock.ts";

const sweepLock = { key: 7_241_905_113, frozenAfterMs: 15_000 };

/** Runs `work` while this process holds the sweep lock. @returns false when another process holds it */
export const withSweepLock = (pool: pg.Pool, work: () => Promise<void>): Promise<boolean> =>
  withAdvisoryLock(pool, sweepLock, work);
