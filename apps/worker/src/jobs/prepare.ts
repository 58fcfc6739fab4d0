/**
 * Brings a run's model to the version its rows say it has: created and warm-started at first, adopted again after the model server
 * started anew (newest COMPLETE checkpoint, then the stored rows of every later step in order). Doing it again from the
 * start is always right: nothing of it counts before `setModel`.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { RunJob } from "@rolldeck/contracts/jobs";
import type { ModelRecovery, TrainableModel } from "@rolldeck/contracts/ports/backend";
import { loseCheckpoint, recordCheckpoint } from "@rolldeck/db/training/checkpoints";
import { type ClaimedPrepare, claimPrepare, failPrepare } from "@rolldeck/db/training/claim-prepare";
import { setModel } from "@rolldeck/db/training/set-model";
import { readTrainingRows } from "@rolldeck/db/training/training-rows";
import { askForWorkers } from "../fleet/ask-for-workers.ts";
import { forwardBackwardRows, stepModel } from "../training/apply-rows.ts";
import { BootProgress } from "../training/boot-progress.ts";
import { checkChatTemplate } from "../training/check-chat-template.ts";
import { checkSandboxes } from "../training/check-sandboxes.ts";
import { checkTools } from "../training/check-tools.ts";
import { fenceToken } from "../training/fence-token.ts";
import { letGo } from "../training/let-go.ts";
import type { PrepareScene } from "../training/prepare-scene.ts";
import { trainJob } from "../training/train-job.ts";
import { trainerSeat } from "../training/trainer-holder.ts";
import { waitForModelServer } from "../training/wait-for-model-server.ts";
import { type WeightsSource, weightsSource } from "../training/weights-source.ts";
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
  if (config.backend.fleet !== null)
    await askForWorkers(context.pool, runId, config.backend.fleet, config.model.startFrom);
  const boot = BootProgress.of(context.pool, runId);
  const seat = trainerSeat(context.pool, { kind: "prepare", runId, claim }, signal);
  for (;;) {
    const served = claimed.servingVersion !== null;
    const info = await waitForModelServer(context, { run: claimed, boot, served, signal });
    try {
      await prepareOn({ context, claimed, info, boot, seat, signal });
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BoundaryError) || error.boundary !== "model-server") throw error;
      const now = await context.backends
        .of(claimed)
        .info(AbortSignal.any([signal, AbortSignal.timeout(3_000)]))
        .catch(() => null);
      if (now?.bootId === info.bootId) throw error;
      context.log.warn({ runId, err: error }, "the model server went away while the model was prepared");
      await sleep(500, signal);
    }
  }
}

async function prepareOn(scene: PrepareScene): Promise<void> {
  const { context, claimed } = scene;
  const version = claimed.servingVersion ?? 0;
  if (claimed.modelId !== null) await letGo(context, claimed, claimed.modelId);
  const { source, model } = await modelWithWeights(scene, version);
  try {
    await serve(scene, model, source);
  } catch (error) {
    await letGo(context, claimed, model.modelId);
    throw error;
  }
}

/** Brings the model from its weights' version to the one that serves, and lets it serve. */
async function serve(scene: PrepareScene, model: TrainableModel, source: WeightsSource | null): Promise<void> {
  const { context, claimed, info, boot, seat, signal } = scene;
  const version = claimed.servingVersion ?? 0;
  if (source === null) await keepReference(scene, model);
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

/**
 * Every KL is against the run's first weights: those that nothing has kept (the seed's) are saved as its version 0. Where nothing is
 * trained here there is no KL: an evaluation's model is asked for samples alone, a driven run's reference is its trainer's.
 */
async function keepReference({ context, claimed, seat }: PrepareScene, model: TrainableModel): Promise<void> {
  const { runId, claim, config } = claimed;
  const trainsHere = config.kind === "train" && config.stepSource === "planned";
  if (!trainsHere || config.algorithm.kl.coefficient === 0) return;
  const name = `${runId}-reference-${claim}`;
  const saved = await seat.during(model.saveWeights(name, await seat.nextSeq()));
  await recordCheckpoint(context.pool, seat.holder, { version: 0, name, ...saved });
}

/** Losses in a row after which something else must be wrong. */
const maxLosses = 20;

/** A checkpoint that the server has lost or finds damaged leaves an older one, and at last the seed, with more to replay. */
async function modelWithWeights(scene: PrepareScene, version: number) {
  const { context, seat } = scene;
  const lost = new Set<string>();
  for (;;) {
    const source = await weightsSource(scene, version, lost);
    try {
      return { source, model: await createFrom(scene, source) };
    } catch (error) {
      if (!(error instanceof LostWeights)) throw error;
      const { path, version: at } = error.source;
      if (lost.size >= maxLosses || lost.has(path)) throw error.cause;
      lost.add(path);
      context.log.warn({ checkpoint: path, err: error.cause }, "a checkpoint can't be loaded; going on without it");
      await loseCheckpoint(context.pool, seat.holder, { version: at, path, reason: wordsOf(error.cause) });
    }
  }
}

class LostWeights extends Error {
  constructor(
    readonly source: WeightsSource,
    cause: unknown,
  ) {
    super(`${source.name} can't be loaded`, { cause });
  }
}

const wordsOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

const lostCodes: ReadonlySet<string> = new Set(["unknown_model", "not_found", "conflict"]);
/** Where a model can vanish while it is asked to load, an unknown model says nothing of the checkpoint. */
const isLost = (error: unknown, recovery: ModelRecovery): boolean =>
  error instanceof BoundaryError &&
  error.boundary === "model-server" &&
  lostCodes.has(error.code) &&
  !(recovery === "by-checkpoint" && error.code === "unknown_model");

/** A new model with the source's weights; its request numbers start at 1. */
async function createFrom(scene: PrepareScene, source: WeightsSource | null): Promise<TrainableModel> {
  const { context, claimed, boot, seat, signal } = scene;
  const { runId, claim, config } = claimed;
  await boot.report("create-model", source === null ? "creating the model" : `loading ${source.name}`);
  const fence = { runId, token: fenceToken({ prepareClaim: claim, step: 0, claim: 0 }) };
  const { name } = config.model;
  const backend = context.backends.of(claimed);
  const loraRank = config.backend.lora?.rank ?? 0;
  const made = backend.createModel({ baseModel: name, seed: config.seed, loraRank, fence, signal });
  const model = await seat.during(made);
  await seat.resetTo(0);
  if (source !== null) {
    // The optimizer starts afresh after a warm start: its moments belong to another loss.
    const load = { optimizer: source.version > 0, seqId: await seat.nextSeq() };
    try {
      await seat.during(model.loadWeights(source.path, load));
    } catch (error) {
      await letGo(context, claimed, model.modelId);
      throw isLost(error, backend.recovery) ? new LostWeights(source, error) : error;
    }
  }
  return model;
}

/** Steps after the source's version, from their stored rows, in order. @returns how many */
async function replay(scene: PrepareScene, model: TrainableModel, from: number, to: number): Promise<number> {
  if (to <= from) return 0;
  const { context, claimed, boot, seat } = scene;
  const steps = await readTrainingRows(context.pool, claimed.runId, from + 1, to);
  // A server that does not tell a model's step takes no notice of an expected one.
  const tells = context.backends.of(claimed).recovery === "by-step";
  let modelStep = tells ? (await seat.during(model.state())).step : from;
  for (const [index, { step, rows }] of steps.entries()) {
    const progress = { done: index, total: steps.length, unit: "steps" };
    await boot.report("create-model", `replaying the stored update ${step}`, progress);
    await seat.during(forwardBackwardRows(model, rows, claimed.config, () => seat.nextSeq()));
    const options = { step, seqId: await seat.nextSeq(), expectStep: modelStep };
    ({ step: modelStep } = await seat.during(stepModel(model, rows, claimed.config, options)));
  }
  return steps.length;
}
