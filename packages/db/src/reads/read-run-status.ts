/** Only the status of a run, for those who decide by it. */
import { type RunStatus, runStatuses } from "@rolldeck/contracts/lifecycle";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

/** @returns null when there is no such run */
export async function readRunStatus(db: Queryable, runId: string): Promise<RunStatus | null> {
  const row = await readRow(
    db,
    z.object({ status: z.enum(runStatuses) }),
    `select "status" from "runs" where "id" = $1`,
    [runId],
  );
  return row?.status ?? null;
}
