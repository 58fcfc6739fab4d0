/** A run's config as it is dispatched now, and the pools' sizes. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { DispatcherChange, RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { withChange } from "../runs/change-dispatcher.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";

export interface DispatchedRun {
  readonly config: RunConfig;
  readonly pools: Readonly<Partial<Record<Resource, number>>>;
}
const RunRow = z.object({ config: RunConfig, dispatch: DispatcherChange.nullable() });
const PoolRow = z.object({ resource: z.enum(resources), size: z.int() });

/** @throws NotFoundError */
export async function readDispatched(db: Queryable, runId: string): Promise<DispatchedRun> {
  const run = await readRow(db, RunRow, `select "config", "dispatch" from "runs" where "id" = $1`, [runId]);
  if (run === null) throw new NotFoundError("run", runId);
  const pools = await readRows(db, PoolRow, `select "resource", "size" from "pools"`);
  return {
    config: withChange(run.config, run.dispatch),
    pools: Object.fromEntries(pools.map(({ resource, size }) => [resource, size])),
  };
}
