/**
 * Stored rows → one optimizer step. The update and its replay after a lost model go through this one function with the same
 * rows, so they send the same numbers. Which rows were stored decides everything; nothing is computed anew.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { AdamSpec, OptimResult, TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { exportTinker } from "@rolldeck/rl/export-tinker";
import { type KlEstimator, klTerm } from "@rolldeck/rl/kl";
import { inRequests } from "./in-requests.ts";
import { adamSpec, lossSpec } from "./loss-spec.ts";

export interface AppliedRows {
  /** By row number: trainer logprobs of the tokens after the first. */
  readonly logprobs: ReadonlyMap<number, readonly number[]>;
  /** Largest |trainer − sampler| over trained tokens before the step; null when nothing was trained. */
  readonly logprobGap: number | null;
  /** Mean over trained tokens of the run's estimator against its reference; null where the rows have none. */
  readonly kl: number | null;
  /** Sums of the protocol's metrics by name without suffix. */
  readonly sums: Readonly<Record<string, number>>;
}

/**
 * Sends the rows that train something; their gradient is accumulated, nothing is applied yet.
 * @throws BoundaryError model-server/non_finite: such a gradient must not be applied
 */
export async function forwardBackwardRows(
  model: TrainableModel,
  rows: readonly StoredTrainingRow[],
  config: RunConfig,
  nextSeq: () => Promise<number>,
): Promise<AppliedRows> {
  const sent = rows.filter(isTrained);
  const loss = { ...lossSpec(config), datums: sent.length };
  const logprobs = new Map<number, readonly number[]>();
  const sums: Record<string, number> = {};
  let logprobGap: number | null = null;
  const kl = { sum: 0, tokens: 0 };
  for (const chunk of inRequests(sent)) {
    const data = chunk.map(storedDatum);
    const result = await model.forwardBackward(data, loss, await nextSeq());
    refuseNonFinite(result.metrics);
    for (const [index, row] of chunk.entries()) {
      const trainer = result.logprobs[index] ?? [];
      logprobs.set(row.row, trainer);
      logprobGap = maxOf(logprobGap, gapOf(row, data[index], trainer));
      addKl(kl, data[index], trainer, config.algorithm.kl.estimator);
    }
    for (const [name, value] of Object.entries(result.metrics)) {
      if (name.endsWith(":sum")) sums[name.slice(0, -4)] = (sums[name.slice(0, -4)] ?? 0) + value;
    }
  }
  return { logprobs, logprobGap, sums, kl: kl.tokens > 0 ? kl.sum / kl.tokens : null };
}

/**
 * Applies what was accumulated. With no row to train the step is made with a learning rate of 0: weights stay, and model
 * and run go on counting alike.
 * @param options `step`: the run's, from 1
 */
export function stepModel(
  model: TrainableModel,
  rows: readonly StoredTrainingRow[],
  config: RunConfig,
  { step, ...options }: { readonly step: number; readonly seqId: number; readonly expectStep: number },
): Promise<OptimResult> {
  return model.optimStep(updateSpec(config, { step, rows }), options);
}

/** What the optimizer is told at a step of the run. */
export function updateSpec(
  config: RunConfig,
  { step, rows }: { readonly step: number; readonly rows: readonly StoredTrainingRow[] },
): AdamSpec {
  const adam = adamSpec(config, step);
  return rows.some(isTrained) ? adam : { ...adam, learningRate: 0, weightDecay: 0 };
}

/** Is there a token to train, after what the trainer's logprobs left out? */
const isTrained = ({ sent, correction }: StoredTrainingRow): boolean =>
  sent && (correction === null || correction.mask.some(({ reason }) => reason === null));

/** A model whose numbers are not finite has nothing to teach, and would pass that on to every weight. */
export function refuseNonFinite(metrics: Readonly<Record<string, number>>): void {
  const bad = metrics["non_finite_tokens:sum"] ?? 0;
  if (bad === 0) return;
  const message = `${bad} tokens have a log-probability or loss that is not finite: the weights may have diverged (a lower learning rate, gradient clipping) or overflow`;
  throw new BoundaryError("model-server", "non_finite", message);
}

/** A stored row as the wire's datum. @throws RangeError when ids, mask and logprobs do not fit each other */
export function storedDatum(row: StoredTrainingRow): TrainingDatum {
  const { correction } = row;
  return exportTinker({
    ...row,
    mask: correction?.mask ?? row.mask,
    samplerLogprobs: row.logprobs,
    tokenWeights: correction?.tokenWeights ?? null,
    trainerLogprobs: correction?.trainerLogprobs ?? null,
  });
}

/** Of the trained tokens; the sampler's logprobs are the row's, whatever the loss compares with. */
function gapOf(row: StoredTrainingRow, datum: TrainingDatum | undefined, trainer: readonly number[]): number | null {
  let gap: number | null = null;
  for (const [t, weight] of (datum?.weights ?? []).entries()) {
    const ours = row.logprobs[t + 1] ?? null;
    const theirs = trainer[t];
    if (weight !== 0 && ours !== null && theirs !== undefined) gap = maxOf(gap, Math.abs(theirs - ours));
  }
  return gap;
}

function addKl(
  kl: { sum: number; tokens: number },
  datum: TrainingDatum | undefined,
  trainer: readonly number[],
  estimator: KlEstimator,
): void {
  for (const [t, reference] of (datum?.refLogprobs ?? []).entries()) {
    if (datum?.weights[t] !== 1) continue;
    kl.sum += klTerm(trainer[t] ?? reference, reference, estimator).value;
    kl.tokens++;
  }
}

const maxOf = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : Math.max(a, b));
