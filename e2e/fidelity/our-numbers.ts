/** Our numbers of a batch, in the shapes in which the packages give theirs. */
import { lossScales, type Normalisation } from "@rolldeck/rl/denominators";
import { type GroupAdvantageName, groupAdvantages } from "@rolldeck/rl/group-advantages";
import { type KlEstimator, klTerm } from "@rolldeck/rl/kl";
import { type ClipBounds, type LossName, sequenceLoss } from "@rolldeck/rl/losses";
import { type FidelityBatch, fidelityClip, fidelityNormaliser } from "@rolldeck/rl/testing/fidelity-batches";
import type { Numbers } from "./reference-output.ts";

type Rows = readonly number[];

/** Clip bounds without the dual clip. */
export const singleClip: ClipBounds = { ...fidelityClip, dual: null };

export const trainedTokens = (mask: readonly number[]): number => mask.filter((kept) => kept === 1).length;

/** Rows of each group, as indices; rows of one group lie beside each other. */
export function groupRows(batch: FidelityBatch): number[][] {
  const groups: number[][] = [];
  batch.groups.forEach((group, row) => {
    if (row > 0 && batch.groups[row - 1] === group) groups.at(-1)?.push(row);
    else groups.push([row]);
  });
  return groups;
}

/** A number per row at each of the row's trained tokens, 0 elsewhere. */
export const atTokens = (batch: FidelityBatch, perRow: Rows): number[][] =>
  batch.mask.map((mask, row) => mask.map((kept) => (kept === 1 ? (perRow[row] ?? 0) : 0)));

/** An estimator's advantage of each row; every row of these batches has a reward. */
export function rowAdvantages(batch: FidelityBatch, name: GroupAdvantageName): number[] {
  return groupRows(batch).flatMap((rows) =>
    groupAdvantages(
      rows.map((row) => batch.rewards[row] ?? null),
      name,
    ).map((advantage) => advantage ?? Number.NaN),
  );
}

/** As `rowAdvantages`, with something else for groups of one. */
export function withSingles(batch: FidelityBatch, perRow: Rows, single: (reward: number) => number): number[] {
  const alone = new Set(groupRows(batch).flatMap((rows) => (rows.length === 1 ? rows : [])));
  return perRow.map((advantage, row) => (alone.has(row) ? single(batch.rewards[row] ?? 0) : advantage));
}

/** The scale of each row under a reduction; L is the comparisons' constant. */
export const rowScales = (batch: FidelityBatch, normalisation: Normalisation): number[] =>
  lossScales(
    batch.mask.map((mask, row) => ({ trainedTokens: trainedTokens(mask), group: batch.groups[row] ?? 0 })),
    normalisation,
    fidelityNormaliser,
  );

export interface LossOptions {
  readonly clip?: ClipBounds;
  /** Per row; default 1, a plain sum. */
  readonly scales?: Rows;
  /** Per row and token, multiplied into the advantage; default 1. */
  readonly weights?: readonly Rows[];
  readonly mask?: readonly Rows[];
  /** Per row, in place of the batch's. */
  readonly advantages?: Rows;
  readonly klCoefficient?: number;
  /** The KL term times ρ, with the gradient of both. */
  readonly klTimesRatio?: boolean;
}

/** The loss of a batch and its gradient with respect to `new`. */
export function batchLoss(batch: FidelityBatch, name: LossName, options: LossOptions = {}): Numbers {
  const advantages = options.advantages ?? batch.advantages;
  const rows = (options.mask ?? batch.mask).map((mask, row) => {
    const scale = options.scales?.[row] ?? 1;
    const newLogprobs = batch.new[row] ?? [];
    const weigh = (t: number) => (advantages[row] ?? 0) * scale * (options.weights?.[row]?.[t] ?? 1);
    const oldLogprobs = batch.old[row] ?? [];
    const loss = sequenceLoss(
      name,
      { newLogprobs, oldLogprobs, mask, advantages: mask.map((_, t) => weigh(t)) },
      options.clip ?? singleClip,
    );
    const kl = mask.map((kept, t) => {
      const term = klTerm(newLogprobs[t] ?? 0, batch.ref[row]?.[t] ?? 0, "k3");
      const weight = kept === 1 ? (options.klCoefficient ?? 0) * scale : 0;
      if (options.klTimesRatio !== true) return { value: term.value * weight, gradient: term.gradient * weight };
      const ratio = Math.exp((newLogprobs[t] ?? 0) - (oldLogprobs[t] ?? 0));
      return { value: term.value * ratio * weight, gradient: (term.value + term.gradient) * ratio * weight };
    });
    return {
      value: loss.sum + kl.reduce((sum, { value }) => sum + value, 0),
      gradient: loss.gradients.map((gradient, t) => gradient + (kl[t]?.gradient ?? 0)),
    };
  });
  return { value: rows.reduce((sum, { value }) => sum + value, 0), gradient: rows.map(({ gradient }) => gradient) };
}

/** Every value and gradient of a loss times one number. */
export const timesLoss = (numbers: Numbers, factor: number): Numbers => ({
  value: (numbers.value ?? Number.NaN) * factor,
  gradient: scaleRows(numbers.gradient, factor),
});

function scaleRows(rows: Numbers["gradient"], factor: number): number[][] {
  if (!Array.isArray(rows)) return [];
  return rows.map((row) => (Array.isArray(row) ? row.map((value) => Number(value) * factor) : []));
}

/** Rows that have a trained token. */
export const trainedRows = (batch: FidelityBatch): number =>
  batch.mask.filter((mask) => trainedTokens(mask) > 0).length;

/** KL terms token by token, their sum and its gradient. */
export function klNumbers(
  batch: FidelityBatch,
  term: (current: number, reference: number) => { value: number; gradient: number },
): Numbers {
  const terms = batch.mask.map((mask, row) =>
    mask.map((kept, t) =>
      kept === 1 ? term(batch.new[row]?.[t] ?? 0, batch.ref[row]?.[t] ?? 0) : { value: 0, gradient: 0 },
    ),
  );
  return {
    value: terms.flat().reduce((sum, { value }) => sum + value, 0),
    values: terms.map((row) => row.map(({ value }) => value)),
    gradient: terms.map((row) => row.map(({ gradient }) => gradient)),
  };
}

export const klOf = (estimator: KlEstimator) => (batch: FidelityBatch) =>
  klNumbers(batch, (current, reference) => klTerm(current, reference, estimator));

/** |d|, from our k1 = d. */
export const absoluteKl = (batch: FidelityBatch): Numbers =>
  klNumbers(batch, (current, reference) => {
    const { value, gradient } = klTerm(current, reference, "k1");
    return { value: Math.abs(value), gradient: Math.sign(value) * gradient };
  });
