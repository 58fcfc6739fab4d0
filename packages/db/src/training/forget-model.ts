/** When a run's model is no longer in its backend's memory although the backend did not start anew. */
import type pg from "pg";
import { raiseWake } from "../hot/event-log.ts";

/** The planner prepares the model again. @returns false when the row knows another model by now */
export async function forgetModel(pool: pg.Pool, runId: string, modelId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update runs r set model_boot_id = null, ${raiseWake("true")}
     where r.id = $1 and r.model_id = $2 and r.model_boot_id is not null`,
    [runId, modelId],
  );
  return rowCount === 1;
}

/** The same, when all that is known of the model is a sampling session that its server no longer has. */
export async function forgetServedModel(pool: pg.Pool, runId: string, samplingSessionId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update runs r set model_boot_id = null, ${raiseWake("true")}
     where r.id = $1 and r.sampling_session_id = $2 and r.model_boot_id is not null`,
    [runId, samplingSessionId],
  );
  return rowCount === 1;
}
