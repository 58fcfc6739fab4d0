/**
 * What has to be known of a step's rows before they are trained: the trainer's own logprobs where the run corrects by them, the
 * reference's where the loss has a KL term. Found once, stored, then only read: an update that is repeated or replayed sends the
 * numbers of the first time.
 */
import { correctsRows } from "@rolldeck/contracts/algorithm-config";
import type { TrainableModel } from "@rolldeck/contracts/ports/backend";
import { writeRowFindings } from "@rolldeck/db/training/row-findings";
import {
  type MaskRun,
  maskRuns,
  type StoredCorrection,
  type StoredTrainingRow,
} from "@rolldeck/db/training/training-rows";
import { correctRows } from "@rolldeck/rl/correct-rows";
import { encodeMask, spanMask } from "@rolldeck/rl/mask-reasons";
import { refuseNonFinite, storedDatum } from "./apply-rows.ts";
import { inRequests } from "./in-requests.ts";
import { commonSettings } from "./loss-spec.ts";
import { type ReferenceScene, referenceLogprobs } from "./reference.ts";

export interface FindingsScene extends ReferenceScene {
  readonly stepId: string;
  readonly claim: number;
  /** The version that the update starts from. */
  readonly learnerVersion: number;
  readonly model: TrainableModel;
  readonly nextSeq: () => Promise<number>;
}

/** The rows with all that their update needs. @throws FencedError; BoundaryError; RangeError for numbers that are not finite */
export async function withFindings(
  scene: FindingsScene,
  rows: readonly StoredTrainingRow[],
): Promise<readonly StoredTrainingRow[]> {
  const { algorithm } = scene.config;
  const sent = rows.filter((row) => row.sent);
  const uncorrected = correctsRows(algorithm.offPolicy) && sent.some((row) => row.correction === null);
  const inLoss = algorithm.kl.coefficient > 0 && algorithm.kl.placement === "loss";
  const unreferenced = inLoss && sent.some((row) => row.refLogprobs === null);
  if (!uncorrected && !unreferenced) return rows;
  const corrections = uncorrected ? await corrected(scene, sent) : sent.map((row) => row.correction);
  const references = unreferenced
    ? (await referenceLogprobs(scene, sent)).map(asStored)
    : sent.map((row) => row.refLogprobs);
  const found = new Map(
    sent.map(({ row }, place) => [
      row,
      { correction: corrections[place] ?? null, refLogprobs: references[place] ?? null },
    ]),
  );
  const { stepId, claim } = scene;
  const findings = [...found].map(([row, { correction, refLogprobs }]) => ({
    ...{ row, ...correction },
    ...(refLogprobs && { refLogprobs }),
  }));
  await writeRowFindings(scene.context.pool, { stepId, claim }, findings);
  return rows.map((row) => ({ ...row, ...found.get(row.row) }));
}

/** Tokens left out ÷ tokens that would have been trained; null where no row was corrected. */
export function leftOut(rows: readonly StoredTrainingRow[]): number | null {
  const corrected = rows.filter((row) => row.correction !== null);
  const wanted = corrected.reduce((sum, { mask }) => sum + trained(mask), 0);
  const kept = corrected.reduce((sum, { correction }) => sum + trained(correction?.mask ?? []), 0);
  return wanted === 0 ? null : (wanted - kept) / wanted;
}

const trained = (runs: readonly MaskRun[]): number =>
  runs.reduce((sum, { count, reason }) => sum + (reason === null ? count : 0), 0);

async function corrected(scene: FindingsScene, rows: readonly StoredTrainingRow[]): Promise<StoredCorrection[]> {
  const trainer = await trainerLogprobs(scene, rows);
  const uncorrected = rows.map(({ rolloutId, mask, logprobs, versions }, place) => ({
    rolloutId,
    mask: spanMask(mask),
    logprobs,
    versions,
    trainerLogprobs: trainer[place] ?? [],
  }));
  const corrections = correctRows(uncorrected, scene.config.algorithm.offPolicy, scene.learnerVersion);
  return corrections.map(({ mask, weights }, place) => ({
    mask: maskRuns(encodeMask(mask)),
    tokenWeights: weights.map(Math.fround),
    trainerLogprobs: trainer[place] ?? [],
  }));
}

/** Rounded as rows keep them: what is sent the first time is then what any later time would send. */
const asStored = (logprobs: readonly (number | null)[]): (number | null)[] =>
  logprobs.map((logprob) => (logprob === null ? null : Math.fround(logprob)));

/** One forward pass with the weights that the update starts from; null for each row's first token. */
async function trainerLogprobs(
  { model, config, nextSeq }: FindingsScene,
  rows: readonly StoredTrainingRow[],
): Promise<(number | null)[][]> {
  const found: (number | null)[][] = [];
  // The plainest loss: the run's own may need what is not known yet.
  const loss = { name: "cross_entropy", config: commonSettings(config) };
  for (const chunk of inRequests(rows)) {
    const { logprobs, metrics } = await model.forward(chunk.map(storedDatum), loss, await nextSeq());
    refuseNonFinite(metrics);
    found.push(...logprobs.map((own) => [null, ...asStored(own)]));
  }
  return found;
}
