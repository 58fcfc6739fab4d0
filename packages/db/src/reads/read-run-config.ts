/** The config a run was launched with. */
import { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

/** @returns null when there is no such run */
export async function readRunConfig(db: Queryable, runId: string): Promise<RunConfig | null> {
  const row = await readRow(db, z.object({ config: RunConfig }), `select "config" from "runs" where "id" = $1`, [
    runId,
  ]);
  return row?.config ?? null;
}
