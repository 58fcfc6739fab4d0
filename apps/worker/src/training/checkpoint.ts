/** Saves a checkpoint of the version an update has just made, and removes what the run no longer keeps. */

import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import type { WorkerContext } from "../worker-context.ts";
import { removeCheckpoints } from "./remove-checkpoints.ts";
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
  await recordCheckpoint(context.pool, seat.holder, { version: step, name, ...saved });
  await removeCheckpoints({ context, runId, model }, seat.holder, claimed.config.checkpoints);
}
