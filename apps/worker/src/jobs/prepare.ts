/**
 * Brings a run's model to the version its rows say it has: created and warm-started at first, adopted again after the model server
 * started anew (newest COMPLETE checkpoint, then the stored rows of every later step in order). Doing it again from the
 * start is always right: nothing of it counts before `setModel`.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { RunJob } from "@rolldeck/contracts/jobs";
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { type ClaimedPrepare, claimPrepare, failPrepare } from "@rolldeck/db/training/claim-prepare";
import { setModel } from "@rolldeck/db/training/set-model";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import { forwardBackwardRows, stepModel } from "../training/apply-rows.ts";
import { BootProgress } from "../training/boot-progress.ts";
import { checkChatTemplate } from "../training/check-chat-template.ts";
import { checkSandboxes } from "../training/check-sandboxes.ts";
import { checkTools } from "../training/check-tools.ts";
import { fenceToken } from "../training/fence-token.ts";
import type { PrepareScene } from "../training/prepare-scene.ts";
import { trainJob } from "../training/train-job.ts";
import { trainerSeat } from "../training/trainer-holder.ts";
import { waitForModelServer } from "../training/wait-for-model-server.ts";
import { loseWeights, type WeightsSource, weightsSource } from "../training/weights-source.ts";
import { sleep } from "../wait-for.ts";
import type { WorkerContext } from "../worker-context.ts";

export async function prepare(context: WorkerContext, { runId }: RunJob): Promise<void> {
  if (context.stopping.aborted) return;
  const claimed = await claimPrepare(context.pool, runId, context.workerId);
  if (claimed === null) return;
  const { claim } = claimed;
  await trainJob(context, {
    runId,
    claim: { kind: "prepare", runId, claim },
    act: async (signal) => {
      await checkChatTemplate(context, claimed);
      await checkTools(context, claimed, signal);
      await checkSandboxes(context, claimed, signal);
      await prepareModel(context, claimed, signal);
    },
    giveBack: (reason, end) => failPrepare(context.pool, { runId, claim, reason, ...end }),
  });
}

/** A server that goes away under the work is waited for and counts as no failure; any other error does. */
async function prepareModel(context: WorkerContext, claimed: ClaimedPrepare, signal: AbortSignal): Promise<void> {
  const { runId, claim, config } = claimed;
  const boot = BootProgress.of(context.pool, runId);
  const seat = trainerSeat(context.pool, { kind: "prepare", runId, claim }, signal);
  for (;;) {
    const served = claimed.servingVersion !== null;
    const info = await waitForModelServer(context, { backend: config.backend, boot, served, signal });
    try {
      await prepareOn({ context, claimed, info, boot, seat, signal });
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BoundaryError) || error.boundary !== "model-server") throw error;
      const now = await context.backends
        .of(config.backend)
        .info(AbortSignal.any([signal, AbortSignal.timeout(3_000)]))
        .catch(() => null);
      if (now?.bootId === info.bootId) throw error;
      context.log.warn({ runId, err: error }, "the model server went away while the model was prepared");
      await sleep(500, signal);
    }
  }
}

async function prepareOn(scene: PrepareScene): Promise<void> {
  const { context, claimed, info, boot, seat, signal } = scene;
  const version = claimed.servingVersion ?? 0;
  const { source, model } = await modelWithWeights(scene, version);
  const replayed = await replay(scene, model, source?.version ?? 0, version);
  await boot.report("first-version", `version ${version} goes to the sampler`);
  const { samplingSessionId } = await seat.during(model.saveWeightsForSampler(await seat.nextSeq()));
  signal.throwIfAborted();
  const { runId, claim } = claimed;
  const checkpoint = source?.name ?? null;
  const { bootId } = info;
  const set = { runId, claim, modelId: model.modelId, bootId, samplingSessionId, version, checkpoint, replayed };
  await setModel(context.pool, set);
  await boot.report("ready", `version ${version} serves`);
}

/** Losses in a row after which something else must be wrong. */
const maxLosses = 20;

/** A checkpoint that the server has lost or finds damaged leaves an older one, and at last the seed, with more to replay. */
async function modelWithWeights(scene: PrepareScene, version: number) {
  for (let losses = 0; ; losses++) {
    const source = await weightsSource(scene, version);
    try {
      return { source, model: await createFrom(scene, source) };
    } catch (error) {
      if (source === null || losses >= maxLosses || !isLost(error)) throw error;
      scene.context.log.warn(
        { checkpoint: source.path, err: error },
        "a checkpoint can't be loaded; going on without it",
      );
      await loseWeights(scene.context.pool, source.path);
    }
  }
}

const lost: ReadonlySet<string> = new Set(["unknown_model", "not_found", "conflict"]);
const isLost = (error: unknown): boolean =>
  error instanceof BoundaryError && error.boundary === "model-server" && lost.has(error.code);

/** A new model with the source's weights; its request numbers start at 1. */
async function createFrom(scene: PrepareScene, source: WeightsSource | null): Promise<TrainableModel> {
  const { context, claimed, boot, seat, signal } = scene;
  const { runId, claim, config } = claimed;
  await boot.report("create-model", source === null ? "creating the model" : `loading ${source.name}`);
  const fence = { runId, token: fenceToken({ prepareClaim: claim, step: 0, claim: 0 }) };
  const { name } = config.model;
  const backend = context.backends.of(config.backend);
  const model = await seat.during(backend.createModel({ baseModel: name, seed: config.seed, fence, signal }));
  await seat.resetTo(0);
  if (source !== null) {
    // The optimizer starts afresh after a warm start: its moments belong to another loss.
    const load = { optimizer: source.version > 0, seqId: await seat.nextSeq() };
    await seat.during(model.loadWeights(source.path, load));
  }
  return model;
}

/** Steps after the source's version, from their stored rows, in order. @returns how many */
async function replay(scene: PrepareScene, model: TrainableModel, from: number, to: number): Promise<number> {
  if (to <= from) return 0;
  const { context, claimed, boot, seat } = scene;
  const steps = await readTrainingRows(context.pool, claimed.runId, from + 1, to);
  let { step: modelStep } = await seat.during(model.state());
  for (const [index, { step, rows }] of steps.entries()) {
    const progress = { done: index, total: steps.length, unit: "steps" };
    await boot.report("create-model", `replaying the stored update ${step}`, progress);
    await seat.during(forwardBackwardRows(model, rows, claimed.config, () => seat.nextSeq()));
    const options = { seqId: await seat.nextSeq(), expectStep: modelStep };
    ({ step: modelStep } = await seat.during(stepModel(model, rows, claimed.config, options)));
  }
  return steps.length;
}
