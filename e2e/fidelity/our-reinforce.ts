/** What looks at the whole batch: REINFORCE++ of its rows, whole or by their spans, and batch normalisation. */
import { batchAdvantages } from "@rolldeck/rl/batch-advantages";
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import { atTokens, trainedTokens } from "./our-numbers.ts";
import type { Numbers } from "./reference-output.ts";

interface Piece {
  readonly row: number;
  readonly start: number;
  readonly end: number;
  readonly reward: number;
  readonly tokens: number;
}

const pieceOf = (batch: FidelityBatch, row: number, start: number, end: number, reward: number): Piece => ({
  row,
  start,
  end,
  reward,
  tokens: trainedTokens((batch.mask[row] ?? []).slice(start, end)),
});

const wholeRows = (batch: FidelityBatch): Piece[] =>
  batch.mask.map((mask, row) => pieceOf(batch, row, 0, mask.length, batch.rewards[row] ?? 0));

/** Each span of trained tokens; the last one of a row has the reward. */
const spans = (batch: FidelityBatch): Piece[] =>
  batch.mask.flatMap((mask, row) => {
    const starts = mask.flatMap((kept, t) => (t === 0 || (kept === 1 && mask[t - 1] === 0) ? [t] : []));
    return starts.map((start, index) => {
      const next = starts[index + 1];
      return pieceOf(batch, row, start, next ?? mask.length, next === undefined ? (batch.rewards[row] ?? 0) : 0);
    });
  });

function whitened(batch: FidelityBatch, pieces: readonly Piece[], shift = 0): { advantages: number[][] } {
  const group = { rewards: pieces.map(({ reward }) => reward), sampledTokens: pieces.map(({ tokens }) => tokens) };
  const [advantages = []] = batchAdvantages([group], { advantage: "reinforce++", batchNormalise: false });
  const result = batch.mask.map((mask) => mask.map(() => 0));
  pieces.forEach(({ row, start, end }, index) => {
    for (let t = start; t < end; t++)
      if (batch.mask[row]?.[t] === 1) (result[row] ?? [])[t] = (advantages[index] ?? Number.NaN) + shift;
  });
  return { advantages: result };
}

/** μ and √(σ² + 1e-8) over tokens, as the whitening has them. */
function whiteningOf(pieces: readonly Piece[]): { count: number; mean: number; deviation: number } {
  const count = pieces.reduce((sum, { tokens }) => sum + tokens, 0);
  const mean = pieces.reduce((sum, { reward, tokens }) => sum + reward * tokens, 0) / count;
  const squares = pieces.reduce((sum, { reward, tokens }) => sum + (reward - mean) ** 2 * tokens, 0);
  return { count, mean, deviation: Math.sqrt(squares / (count - 1) + 1e-8) };
}

export const reinforcePlusPlus = (batch: FidelityBatch): Numbers => whitened(batch, wholeRows(batch));

/** Each span of trained tokens counts as a rollout, and only a row's last one has its reward. */
export const reinforceBySpan = (batch: FidelityBatch): Numbers => whitened(batch, spans(batch));

/**
 * As `reinforceBySpan`, with a mean over one hundred-millionth of a token more: it shifts every advantage by μ · 1e-8 / M over
 * the deviation, which shows where there is none.
 */
export function reinforceBySpanShifted(batch: FidelityBatch): Numbers {
  const pieces = spans(batch);
  const { count, mean, deviation } = whiteningOf(pieces);
  const shift = (mean * 1e-8) / (count + 1e-8) / deviation;
  return whitened(batch, pieces, shift);
}

const advantagePieces = (batch: FidelityBatch): Piece[] =>
  wholeRows(batch).map((piece) => ({ ...piece, reward: batch.advantages[piece.row] ?? 0 }));

/** The batch's own advantages brought to mean 0 and variance 1, by what REINFORCE++ does to rewards. */
export const batchNormalised = (batch: FidelityBatch): Numbers => whitened(batch, advantagePieces(batch));

/** Ours taken back to x, then (x − m) / √(Σ(x − m)² / M), with m the mean over every place of the array, padding too. */
export function normalisedOverPadding(batch: FidelityBatch): Numbers {
  const { count, mean, deviation } = whiteningOf(advantagePieces(batch));
  const places = batch.mask.flat();
  const m = (mean * count) / places.length;
  const squares = atTokens(batch, batch.advantages)
    .flat()
    .reduce((sum, value, place) => sum + (places[place] === 1 ? (value - m) ** 2 : 0), 0);
  const theirDeviation = Math.sqrt(Math.max(squares / count, 1e-8));
  const ours = whitened(batch, advantagePieces(batch)).advantages;
  return {
    advantages: batch.mask.map((mask, row) =>
      mask.map((kept, t) => (kept === 1 ? (ours[row]?.[t] ?? Number.NaN) * deviation + mean - m : 0) / theirDeviation),
    ),
  };
}
