/**
 * Keeps what model servers hold in step with the runs: looks at each live run's model, so that its server does not take it for
 * forgotten when the worker that made it is gone, has a model that is gone all the same prepared again, and frees the models
 * of runs that are over once their last version is saved.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, runStatuses } from "@rolldeck/contracts/lifecycle";
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { BackendConfig } from "@rolldeck/contracts/run-config";
import { gpuWorkerName } from "@rolldeck/db/gpu-workers";
import { newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import { forgetModel } from "@rolldeck/db/training/forget-model";
import { z } from "zod";
import { fenceToken, lastToken } from "./training/fence-token.ts";
import type { WorkerContext } from "./worker-context.ts";

const Row = z.object({
  run_id: z.string(),
  serving_version: z.int().nullable(),
  status: z.enum(runStatuses),
  backend: BackendConfig,
  model_id: z.string(),
  prepare_claim: z.int(),
});
type Held = z.infer<typeof Row>;

/** A round looks at this many models at most; the others have their turn in the next. */
const breadth = 32;

/** One round over the models of every server that answers. */
export async function keepModels(context: WorkerContext): Promise<void> {
  const { rows } = await context.pool.query(
    `select r.id as run_id, r.status, r.serving_version, r.config -> 'backend' as backend, r.model_id, r.prepare_claim
       from runs r join gpu_workers g on g.boot_id = r.model_boot_id and g.state = 'ready'
      where r.model_id is not null order by random() limit $1`,
    [breadth],
  );
  for (const held of z.array(Row).parse(rows)) {
    await (endedRunStatuses.includes(held.status) ? free(context, held) : look(context, held)).catch((error: unknown) =>
      context.log.debug(
        { runId: held.run_id, gpuWorker: gpuWorkerName(held.backend), err: error },
        "model not looked at",
      ),
    );
  }
}

async function look(context: WorkerContext, held: Held): Promise<void> {
  const { run_id: runId, model_id: modelId, prepare_claim: prepareClaim } = held;
  const signal = AbortSignal.timeout(3_000);
  // The lowest token of this prepare: looking at a model fences nobody.
  const fence = { runId, token: fenceToken({ prepareClaim, step: 0, claim: 0 }) };
  try {
    await context.backends.of(held.backend).adoptModel({ modelId, fence, signal }).state();
  } catch (error) {
    if (!isGone(error)) throw error;
    context.log.warn({ runId, modelId }, "the model server no longer holds the run's model");
    if (await forgetModel(context.pool, runId, modelId)) context.requestReconcile(runId);
  }
}

async function free(context: WorkerContext, held: Held): Promise<void> {
  const { run_id: runId, model_id: modelId } = held;
  const fence = { runId, token: lastToken(held.prepare_claim) };
  const signal = AbortSignal.timeout(10_000);
  const model = context.backends.of(held.backend).adoptModel({ modelId, fence, signal });
  try {
    await saveLast(context, held, model);
    await model.unload?.();
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  await forgetModel(context.pool, runId, modelId);
}

/** A run that was stopped between two checkpoints keeps the version that served last. */
async function saveLast(context: WorkerContext, held: Held, model: TrainableModel): Promise<void> {
  const { run_id: runId, serving_version: version } = held;
  const newest = await newestCheckpoint(context.pool, runId);
  if (version === null || version === 0 || version === newest?.version) return;
  const { lastSeqId } = await model.state();
  const name = `${runId}-last-${version}`;
  const saved = await model.saveWeights(name, lastSeqId + 1);
  await recordCheckpoint(context.pool, runId, { version, name, ...saved });
}

/** Not in the server's memory: nothing to look at, nothing to free. */
const isGone = (error: unknown): boolean => error instanceof BoundaryError && error.code === "unknown_model";
