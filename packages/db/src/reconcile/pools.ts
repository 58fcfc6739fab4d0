import type { Demand, Resource, ResourceCounts } from "@rolldeck/contracts/plan";
import type pg from "pg";

export interface Pool {
  readonly resource: Resource;
  readonly size: number;
  readonly used: number;
}
export interface ResourceDemands {
  readonly pool: Pool;
  /** One per live run. */
  readonly demands: readonly Demand[];
}

export function readPools(_pool: pg.Pool): Promise<Pool[]> {
  return Promise.reject(new Error("under construction"));
}
/** What every live run holds and could use of each resource now. */
export function readDemands(_pool: pg.Pool): Promise<ResourceDemands[]> {
  return Promise.reject(new Error("under construction"));
}
/** Stores grants and wakes the runs whose grant rose. */
export function writeGrants(
  _pool: pg.Pool,
  _grants: readonly { readonly resource: Resource; readonly granted: ReadonlyMap<string, number> }[],
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
/** Leases the run may hold in all; a resource without a grant row counts as what the pool has. */
export function readGrants(_pool: pg.Pool, _runId: string): Promise<ResourceCounts> {
  return Promise.reject(new Error("under construction"));
}
/** Pools whose `used` is not the number of their leases: empty when the books are right. */
export function poolLedger(_pool: pg.Pool): Promise<{ resource: Resource; used: number; leases: number }[]> {
  return Promise.reject(new Error("under construction"));
}
