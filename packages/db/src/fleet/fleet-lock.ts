/** One supervisor brings the fleet to what its rows say at a time. */
import type pg from "pg";
import { withAdvisoryLock } from "../advisory-lock.ts";

/** A round waits for hosts that don't answer, and for a new host's GPUs to be counted. */
const fleetLock = { key: 7_241_905_114, frozenAfterMs: 120_000 };

/** @returns false when another process is at it */
export const withFleetLock = (pool: pg.Pool, work: () => Promise<void>): Promise<boolean> =>
  withAdvisoryLock(pool, fleetLock, work);
