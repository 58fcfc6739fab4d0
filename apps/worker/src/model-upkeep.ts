/**
 * Keeps what model servers hold in step with the runs: looks at each live run's model, so that its server does not take it for
 * forgotten when the worker that made it is gone, has a model that is gone all the same prepared again, and frees the models
 * of runs that are over once their last version is saved and what they don't keep is removed.
 */

import { BackendConfig } from "@rolldeck/contracts/backend-config";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, runStatuses } from "@rolldeck/contracts/lifecycle";
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { gpuWorkerName } from "@rolldeck/db/gpu-workers";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { newestCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import { forgetModel } from "@rolldeck/db/training/forget-model";
import type { EndedHolder } from "@rolldeck/db/training/model-holder";
import { z } from "zod";
import { deleteLeftovers } from "./leftover-checkpoints.ts";
import { fenceToken, lastToken } from "./training/fence-token.ts";
import { removeCheckpoints } from "./training/remove-checkpoints.ts";
import type { WorkerContext } from "./worker-context.ts";

const Row = z.object({
  runId: z.string(),
  serving_version: z.int().nullable(),
  status: z.enum(runStatuses),
  config: z.object({ backend: BackendConfig }),
  model_id: z.string(),
  prepare_claim: z.int(),
});
type Held = z.infer<typeof Row>;

/** A round looks at this many models at most; the others have their turn in the next. */
const breadth = 32;

/** A large model takes minutes to save, and one that could not be saved is not freed. */
const freeLimitMs = 30 * 60_000;

export class ModelUpkeep {
  readonly #context: WorkerContext;
  /** By run: beside the sweep, which has other things to do than to wait for a save. */
  readonly #freeing = new Map<string, Promise<void>>();
  /** The same for files that nobody was left to delete. */
  #deleting: Promise<void> | null = null;

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** One round over the models of every server that answers. */
  async look(): Promise<void> {
    const { rows } = await this.#context.pool.query(
      `select r.id as "runId", r.status, r.serving_version, json_build_object('backend', r.config -> 'backend') as config, r.model_id, r.prepare_claim
         from runs r join gpu_workers g on g.boot_id = r.model_boot_id and g.state = 'ready'
        where r.model_id is not null order by random() limit $1`,
      [breadth],
    );
    for (const held of z.array(Row).parse(rows)) {
      if (endedRunStatuses.includes(held.status)) this.#free(held);
      else await look(this.#context, held).catch((error: unknown) => this.#failed(held, error));
    }
    this.#deleteLeftovers();
  }

  /** When nothing is under way any more; the worker's stop ends what is. */
  async settled(): Promise<void> {
    await Promise.all([...this.#freeing.values(), this.#deleting]);
  }

  #deleteLeftovers(): void {
    this.#deleting ??= deleteLeftovers(this.#context)
      .catch((error: unknown) => this.#context.log.debug({ err: error }, "old checkpoints not deleted"))
      .finally(() => {
        this.#deleting = null;
      });
  }

  #free(held: Held): void {
    const { runId } = held;
    if (this.#freeing.has(runId)) return;
    const freed = free(this.#context, held)
      .catch((error: unknown) => this.#failed(held, error))
      .finally(() => this.#freeing.delete(runId));
    this.#freeing.set(runId, freed);
  }

  #failed(held: Held, error: unknown): void {
    this.#context.log.debug({ runId: held.runId, gpuWorker: gpuWorkerName(held), err: error }, "model not looked at");
  }
}

async function look(context: WorkerContext, held: Held): Promise<void> {
  // Others tell nothing of a model: that it is gone shows at the next request that names it.
  if (context.backends.of(held).recovery !== "by-step") return;
  const { runId, model_id: modelId, prepare_claim: prepareClaim } = held;
  const signal = AbortSignal.timeout(3_000);
  // The lowest token of this prepare: looking at a model fences nobody.
  const fence = { runId, token: fenceToken({ prepareClaim, step: 0, claim: 0 }) };
  try {
    await context.backends.of(held).adoptModel({ modelId, fence, signal }).state();
  } catch (error) {
    if (!isGone(error)) throw error;
    context.log.warn({ runId, modelId }, "the model server no longer holds the run's model");
    if (await forgetModel(context.pool, runId, modelId)) context.requestReconcile(runId);
  }
}

async function free(context: WorkerContext, held: Held): Promise<void> {
  const { runId, model_id: modelId } = held;
  const fence = { runId, token: lastToken(held.prepare_claim) };
  const signal = AbortSignal.any([context.stopping, AbortSignal.timeout(freeLimitMs)]);
  const model = context.backends.of(held).adoptModel({ modelId, fence, signal });
  try {
    await saveLast(context, held, model);
    const { checkpoints } = await readConfig(context.pool, runId);
    await removeCheckpoints({ context, runId, model }, holderOf(held), checkpoints);
    await model.unload?.();
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  await forgetModel(context.pool, runId, modelId);
}

/** A run that was stopped between two checkpoints keeps the version that served last. */
async function saveLast(context: WorkerContext, held: Held, model: TrainableModel): Promise<void> {
  const { runId, serving_version: version } = held;
  // Every version has a checkpoint there, or its rows.
  if (context.backends.of(held).recovery !== "by-step") return;
  const newest = await newestCheckpoint(context.pool, runId);
  if (version === null || version === 0 || version === newest?.version) return;
  const { lastSeqId } = await model.state();
  const name = `${runId}-last-${version}`;
  const saved = await model.saveWeights(name, lastSeqId + 1);
  await recordCheckpoint(context.pool, holderOf(held), { version, name, ...saved });
}

const holderOf = ({ runId, model_id: modelId, prepare_claim: claim }: Held): EndedHolder => ({
  kind: "ended",
  runId,
  modelId,
  claim,
});

/** Not in the server's memory: nothing to look at, nothing to free. */
const isGone = (error: unknown): boolean => error instanceof BoundaryError && error.code === "unknown_model";
