/** Deletes what was stored for samplers of versions that no turn names any more. Best effort: what stays is deleted after the next step. */
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { forgetServedWeights, oldServedWeights } from "@rolldeck/db/training/served-weights";
import type { WorkerContext } from "../worker-context.ts";

export async function dropServedWeights(
  { pool, log }: Pick<WorkerContext, "pool" | "log">,
  runId: string,
  model: Pick<TrainableModel, "deleteWeights">,
): Promise<void> {
  if (model.deleteWeights === undefined) return;
  try {
    for (const old of await oldServedWeights(pool, runId)) {
      await model.deleteWeights(old.path);
      await forgetServedWeights(pool, runId, old);
    }
  } catch (error) {
    log.warn({ runId, err: error }, "weights stored for samplers were not deleted");
  }
}
