/**
 * The warm start: supervised steps on the tasks' demonstrations, on a model of its own, saved under a name made from everything
 * that went into it. One that was interrupted is done again.
 */

import { InputError } from "@rolldeck/contracts/errors";
import type { TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { Checkpoint } from "@rolldeck/db/training/checkpoints";
import type { DemonstrationSource } from "./demonstration-source.ts";
import { fenceToken } from "./fence-token.ts";
import type { PrepareScene } from "./prepare-scene.ts";

/** Trains it and saves it. @returns what the server stored */
export async function trainWarmStart(
  scene: PrepareScene,
  source: DemonstrationSource,
  name: string,
): Promise<Omit<Checkpoint, "version">> {
  const { context, claimed, boot, seat, signal } = scene;
  const { runId, claim, config } = claimed;
  const fence = { runId, token: fenceToken({ prepareClaim: claim, step: 0, claim: 0 }) };
  const backend = context.backends.of(claimed);
  const baseModel = config.model.name;
  const model = await seat.during(backend.createModel({ baseModel, seed: config.seed, fence, signal }));
  // Nobody shares this model, so its request numbers need no row.
  let seqId = 0;
  for (let step = 1; step <= source.spec.steps; step++) {
    const loss = await superviseStep(scene, model, source, { step, firstSeqId: seqId + 1 });
    seqId += 2;
    const progress = { done: step, total: source.spec.steps, unit: "steps" };
    await boot.report(
      "warm-start",
      `supervised step ${step} of ${source.spec.steps}, loss ${loss.toFixed(3)}`,
      progress,
    );
  }
  const saved = await seat.during(model.saveWeights(name, seqId + 1));
  await model.unload?.();
  return { name, ...saved };
}

/** @returns mean loss per target token, nats */
async function superviseStep(
  scene: PrepareScene,
  model: TrainableModel,
  source: DemonstrationSource,
  at: { readonly step: number; readonly firstSeqId: number },
): Promise<number> {
  const { seat } = scene;
  const data = meanOverTokens(source.batch(at.step));
  const result = await seat.during(model.forwardBackward(data, { name: "cross_entropy", config: {} }, at.firstSeqId));
  const adam = supervisedAdam(rateAt(at.step, source.spec));
  await seat.during(model.optimStep(adam, { seqId: at.firstSeqId + 1, expectStep: at.step - 1 }));
  return result.metrics["loss:sum"] ?? Number.NaN;
}

const tailShare = 0.35;
const lowestRate = 0.05;

/** Constant, then falling over the last third: at the full rate what is saved would depend on the very last batch. */
export const rateAt = (step: number, { steps, learningRate }: { steps: number; learningRate: number }): number =>
  learningRate * Math.min(1, Math.max(lowestRate, (steps - step + 1) / (steps * tailShare)));

const supervisedAdam = (learningRate: number) =>
  ({ learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 1 }) as const;

/** Weights that sum to 1 over the batch: the summed loss is the mean over target tokens. @throws InputError without any */
export function meanOverTokens(data: readonly TrainingDatum[]): TrainingDatum[] {
  const total = data.reduce((sum, { weights }) => sum + weights.reduce((own, weight) => own + weight, 0), 0);
  if (total === 0)
    throw new InputError([{ path: "model.warmStart", message: "the demonstrations hold no target token" }]);
  return data.map((datum) => ({ ...datum, weights: datum.weights.map((weight) => weight / total) }));
}
