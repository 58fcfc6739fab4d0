/** Removes what a run's rule no longer keeps. Best effort: files that stay behind are deleted with the next pass. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { checkpointFacts } from "@rolldeck/db/training/checkpoint-facts";
import type { ModelHolder } from "@rolldeck/db/training/model-holder";
import {
  abandonFiles,
  markDeleteFailed,
  markRemoved,
  outOfUse,
  takeOutOfUse,
} from "@rolldeck/db/training/remove-checkpoints";
import { keptCheckpoints } from "@rolldeck/dispatch/kept-checkpoints";
import type { WorkerContext } from "../worker-context.ts";

export interface RemovalScene {
  readonly context: Pick<WorkerContext, "pool" | "log">;
  readonly runId: string;
  /** Speaks for the run on the server that holds its files. */
  readonly model: Pick<TrainableModel, "deleteWeights">;
}

/** What the rule lets go, and the files of what went earlier. @throws FencedError when the holder's claim is lost */
export async function removeCheckpoints(
  scene: RemovalScene,
  holder: ModelHolder,
  rule: RunConfig["checkpoints"],
): Promise<void> {
  const { pool } = scene.context;
  const facts = await checkpointFacts(pool, scene.runId, rule.keepBest);
  const kept = keptCheckpoints(facts, rule);
  const gone = facts.flatMap(({ version }) => (kept.get(version)?.length === 0 ? [version] : []));
  await takeOutOfUse(pool, holder, gone);
  await deleteFiles(scene);
}

/** Files of checkpoints that are out of use. What can't be deleted has its turn later, and not for ever. */
export async function deleteFiles({ context, runId, model }: RemovalScene): Promise<void> {
  if (model.deleteWeights === undefined) return abandonFiles(context.pool, runId);
  for (const gone of await outOfUse(context.pool, runId)) {
    try {
      await model.deleteWeights(gone.path);
    } catch (error) {
      context.log.warn({ runId, checkpoint: gone.name, err: error }, "an old checkpoint was not deleted");
      if (!isRefusal(error)) return;
      await markDeleteFailed(context.pool, runId, gone, error.message);
      continue;
    }
    await markRemoved(context.pool, runId, gone);
  }
}

/** The server's word on these files; a server that is away, and a newer holder, say nothing of them. */
const isRefusal = (error: unknown): error is BoundaryError =>
  error instanceof BoundaryError && !error.retryable && error.code !== "fenced";
