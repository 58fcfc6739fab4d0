/** Saves a checkpoint of the version an update has just made, and drops the oldest beyond what the run keeps. */

import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import { pruneCheckpoints } from "@rolldeck/db/training/prune-checkpoints";
import type { WorkerContext } from "../worker-context.ts";
import type { TrainerSeat } from "./trainer-holder.ts";

/** COMPLETE on the server's disk before the row says so. The name holds the claim: a name is used once. */
export async function saveCheckpoint(
  context: WorkerContext,
  claimed: ClaimedUpdate,
  model: TrainableModel,
  seat: TrainerSeat,
): Promise<void> {
  const { runId, step, claim } = claimed;
  const newest = await newestCheckpoint(context.pool, runId);
  if (newest?.version === step) return;
  const name = `${runId}-step-${String(step).padStart(6, "0")}-${claim}`;
  const saved = await seat.during(model.saveWeights(name, await seat.nextSeq()));
  await recordCheckpoint(context.pool, runId, { version: step, name, ...saved });
  await dropOldest(context, claimed, model);
}

/** Best effort: files that stay behind cost disk, nothing else. */
async function dropOldest(context: WorkerContext, claimed: ClaimedUpdate, model: TrainableModel): Promise<void> {
  const { runId, config } = claimed;
  for (const pruned of await pruneCheckpoints(context.pool, runId, config.checkpoints.keep)) {
    await model.deleteWeights?.(pruned.path).catch((error: unknown) => {
      context.log.warn({ runId, checkpoint: pruned.name, err: error }, "an old checkpoint was not deleted");
    });
  }
}
