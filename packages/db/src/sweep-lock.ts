import type pg from "pg";

/** Held by one process at a time; lost with its connection. */
export interface SweepLock {
  /** False once the connection that held it broke. */
  held(): boolean;
  release(): Promise<void>;
}
/** Null when another process holds it. */
export function takeSweepLock(_pool: pg.Pool): Promise<SweepLock | null> {
  return Promise.reject(new Error("under construction"));
}
