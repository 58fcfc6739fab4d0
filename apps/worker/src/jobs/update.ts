/**
 * One optimizer update from a gathered step. Every line may be the last one this process runs: rows are stored before they are
 * sent, the model's own step count tells whether the update was applied, and one write ends the step.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StepJob } from "@rolldeck/contracts/jobs";
import type { BackendInfo, TrainableModel } from "@rolldeck/contracts/ports/backend";
import { noteOnRun } from "@rolldeck/db/runs/note-on-run";
import { type ClaimedUpdate, claimUpdate, failUpdate } from "@rolldeck/db/training/claim-update";
import { finishUpdate } from "@rolldeck/db/training/finish-update";
import { forgetModel } from "@rolldeck/db/training/forget-model";
import { readStepRollouts, type StepRollout } from "@rolldeck/db/training/read-step-rollouts";
import { writeRowFindings } from "@rolldeck/db/training/row-findings";
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { reportModelServer } from "../report-model-server.ts";
import { StageAbort } from "../stage-abort.ts";
import { type AppliedRows, forwardBackwardRows, stepModel } from "../training/apply-rows.ts";
import { saveCheckpoint } from "../training/checkpoint.ts";
import { costMetrics } from "../training/cost-metrics.ts";
import { dropServedWeights } from "../training/drop-served-weights.ts";
import { fenceToken } from "../training/fence-token.ts";
import { firstScored } from "../training/first-scored.ts";
import { type ModelClock, readModelClock } from "../training/model-clock.ts";
import { leftOut, withFindings } from "../training/row-findings.ts";
import { withTrainerLogprobs } from "../training/shared-rows.ts";
import { stepRows } from "../training/step-rows.ts";
import { trainJob } from "../training/train-job.ts";
import { type TrainerSeat, trainerSeat } from "../training/trainer-holder.ts";
import { updateMetrics } from "../training/update-metrics.ts";
import { sleep } from "../wait-for.ts";
import type { WorkerContext } from "../worker-context.ts";

export async function update(context: WorkerContext, { stepId }: StepJob): Promise<void> {
  if (context.stopping.aborted) return;
  const claimed = await claimUpdate(context.pool, stepId, context.workerId);
  if (claimed === null) return;
  const { runId, claim } = claimed;
  const timed = context.measures.updateSeconds.startTimer();
  await trainJob(context, {
    runId,
    claim: { kind: "update", stepId, claim },
    act: async (signal) => {
      await applyUpdate(context, claimed, signal);
      timed();
    },
    giveBack: (reason, { counted }) => failUpdate(context.pool, { stepId, claim, reason, counted }),
  });
}

interface UpdateScene {
  readonly context: WorkerContext;
  readonly claimed: ClaimedUpdate;
  readonly model: TrainableModel;
  readonly bootId: string;
  readonly clock: ModelClock;
  readonly seat: TrainerSeat;
  readonly signal: AbortSignal;
}

async function applyUpdate(context: WorkerContext, claimed: ClaimedUpdate, signal: AbortSignal): Promise<void> {
  const { algorithm, dispatcher } = claimed.config;
  const settled = await readStepRollouts(context.pool, claimed.stepId);
  const rollouts = dispatcher.overSample.rollouts > 0 ? firstScored(settled, algorithm.groupSize) : settled;
  const scene = await takeModel(context, claimed, signal);
  try {
    const rows = await stepRows(scene, claimed, rollouts);
    const trained = await advanceModel(scene, rows);
    const { samplingSessionId } = await scene.seat.during(
      scene.model.saveWeightsForSampler(await scene.seat.nextSeq()),
    );
    if (checkpointDue(claimed)) await saveCheckpoint(context, claimed, scene.model, scene.seat);
    await finishStep(scene, rollouts, trained, samplingSessionId);
    if (claimed.config.backend.fleet?.layout === "split") await dropServedWeights(context, claimed.runId, scene.model);
  } catch (error) {
    throw await whatItMeans(scene, error);
  }
}

/** A model that went away under the update is no failure of the update: it is made again first. */
async function whatItMeans({ context, claimed, model, bootId, signal }: UpdateScene, error: unknown): Promise<unknown> {
  if (signal.aborted || !(error instanceof BoundaryError) || error.boundary !== "model-server") return error;
  const now = await context.backends
    .of(claimed)
    .info(AbortSignal.timeout(3_000))
    .catch(() => null);
  if (now?.bootId !== bootId) return new StageAbort("hand-back", `the model server went away: ${error.message}`);
  if (error.code !== "unknown_model") return error;
  await forgetModel(context.pool, claimed.runId, model.modelId);
  return new StageAbort("hand-back", "the model server no longer holds the run's model; it is adopted again first");
}

/** Waits for the server; a server that started anew has lost the model, which is the prepare job's business. */
async function takeModel(context: WorkerContext, claimed: ClaimedUpdate, signal: AbortSignal): Promise<UpdateScene> {
  const { modelId, modelBootId, runId, stepId, step, claim } = claimed;
  if (modelId === null || modelBootId === null) throw new StageAbort("hand-back", "the run has no model yet");
  const info = await answering(context, claimed, signal);
  if (info.bootId !== modelBootId) {
    await reportModelServer(context, claimed, info);
    throw new StageAbort("hand-back", "the model server started anew; its model is adopted again first");
  }
  const clock = await readModelClock(context.pool, runId);
  const token = fenceToken({ prepareClaim: clock.prepareClaim, step, claim });
  const model = context.backends.of(claimed).adoptModel({ modelId, fence: { runId, token }, signal });
  const seat = trainerSeat(context.pool, { kind: "update", runId, stepId, claim }, signal);
  return { context, claimed, model, bootId: info.bootId, clock, seat, signal };
}

async function answering(context: WorkerContext, claimed: ClaimedUpdate, signal: AbortSignal): Promise<BackendInfo> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await context.backends.of(claimed).info(AbortSignal.any([signal, AbortSignal.timeout(3_000)]));
    } catch (error) {
      signal.throwIfAborted();
      context.log.debug({ err: error }, "the model server does not answer; the update waits");
      await sleep(500, signal);
    }
  }
}

interface Trained {
  /** Null when the step was applied before this claim: its request's answer went with the worker that sent it. */
  readonly rows: AppliedRows | null;
  readonly stored: readonly StoredTrainingRow[];
  readonly leftOut: number | null;
  readonly optimMetrics: Readonly<Record<string, number>>;
  readonly machine: Readonly<Record<string, number>>;
}

/**
 * Whether an earlier claim has made the model's step already.
 * @throws StageAbort where nobody can tell: the model is given up, made again from a checkpoint, and the update repeated on that
 */
async function isApplied({ context, claimed, model, clock, seat }: UpdateScene): Promise<boolean> {
  if (context.backends.of(claimed).recovery === "by-checkpoint") {
    if (claimed.trainerSeq === claimed.settledSeq) return false;
    await forgetModel(context.pool, claimed.runId, model.modelId);
    const reason = "an earlier try may have changed the model; it is made again from its checkpoint first";
    throw new StageAbort("hand-back", reason);
  }
  // First the fence and an empty gradient: what an earlier holder still sends is refused from here on.
  await seat.during(model.zeroGrad());
  const state = await seat.during(model.state());
  await seat.resetTo(state.lastSeqId);
  if (state.step === clock.updatesDone + 1) return true;
  if (state.step === clock.updatesDone) return false;
  const counts = `the model is at step ${state.step}, the run at ${clock.updatesDone}`;
  throw new BoundaryError("model-server", "step_mismatch", counts);
}

/** Brings the model one step on, unless an earlier claim did. */
async function advanceModel(scene: UpdateScene, rows: readonly StoredTrainingRow[]): Promise<Trained> {
  const { context, claimed, model, clock, seat } = scene;
  if (await isApplied(scene))
    return { rows: null, stored: rows, leftOut: leftOut(rows), optimMetrics: {}, machine: {} };
  const { runId, stepId, claim, config } = claimed;
  const nextSeq = () => seat.nextSeq();
  const learnerVersion = claimed.servingVersion ?? claimed.step - 1;
  const findings = { context, runId, stepId, claim, config, learnerVersion, model, nextSeq, signal: scene.signal };
  const whole = await seat.during(withFindings(findings, rows));
  const applied = await seat.during(forwardBackwardRows(model, whole, config, nextSeq));
  const learnt = [...applied.logprobs].map(([row, logprobs]) => ({ row, trainerLogprobs: [null, ...logprobs] }));
  await writeRowFindings(context.pool, { stepId, claim }, learnt);
  const step = { step: claimed.step, seqId: await seat.nextSeq(), expectStep: clock.updatesDone };
  const { metrics, machine } = await seat.during(stepModel(model, whole, config, step));
  if (metrics.skipped === 1) {
    const message = `The gradient of step ${claimed.step} was not finite though its losses were: its update changed no weight.`;
    await noteOnRun(context.pool, runId, [{ level: "warning", message }]);
  }
  const stored = withTrainerLogprobs(whole, applied.logprobs);
  return { rows: applied, stored, leftOut: leftOut(whole), optimMetrics: metrics, machine };
}

const checkpointDue = ({ step, config }: ClaimedUpdate): boolean =>
  step % config.checkpoints.every === 0 || step === config.budget.steps;

async function finishStep(
  scene: UpdateScene,
  rollouts: readonly StepRollout[],
  trained: Trained,
  samplingSessionId: string,
): Promise<void> {
  const { context, claimed, bootId, signal } = scene;
  const { modelId } = scene.model;
  signal.throwIfAborted();
  const { runId, stepId, claim, step } = claimed;
  const points = updateMetrics({ claimed, rollouts, ...trained, nowMs: context.databaseNow() });
  const metrics = { ...points, ...(await costMetrics(context, claimed)) };
  await finishUpdate(context.pool, {
    runId,
    stepId,
    claim,
    modelId,
    version: step,
    bootId,
    samplingSessionId,
    metrics,
  });
}
