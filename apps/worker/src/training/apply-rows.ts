/**
 * Stored rows → one optimizer step. The update and its replay after a lost model go through this one function with the same
 * rows, so they send the same numbers. Which rows were stored decides everything; nothing is computed anew.
 */

import type { OptimResult, TrainableModel, TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Segment } from "@rolldeck/contracts/segments";
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { encodeMask } from "@rolldeck/rl/mask-reasons";
import { toDatum } from "@rolldeck/rl/to-datum";
import { adamSpec, lossSpec } from "./loss-spec.ts";

/** Tokens in one request at most: about 16 MB of JSON, well under the server's 64 MB. */
const maxRequestTokens = 400_000;

export interface AppliedRows {
  /** By row number: trainer logprobs of the tokens after the first. */
  readonly logprobs: ReadonlyMap<number, readonly number[]>;
  /** Largest |trainer − sampler| over trained tokens before the step; null when nothing was trained. */
  readonly logprobGap: number | null;
  /** Sums of the protocol's metrics by name without suffix. */
  readonly sums: Readonly<Record<string, number>>;
}

/** Sends the rows marked `sent`; their gradient is accumulated, nothing is applied yet. */
export async function forwardBackwardRows(
  model: TrainableModel,
  rows: readonly StoredTrainingRow[],
  config: RunConfig,
  nextSeq: () => Promise<number>,
): Promise<AppliedRows> {
  const loss = lossSpec(config);
  const logprobs = new Map<number, readonly number[]>();
  const sums: Record<string, number> = {};
  let logprobGap: number | null = null;
  for (const chunk of chunks(rows.filter((row) => row.sent))) {
    const data = chunk.map(storedDatum);
    const result = await model.forwardBackward(data, loss, await nextSeq());
    for (const [index, row] of chunk.entries()) {
      const trainer = result.logprobs[index] ?? [];
      logprobs.set(row.row, trainer);
      logprobGap = maxOf(logprobGap, gapOf(data[index], trainer));
    }
    for (const [name, value] of Object.entries(result.metrics)) {
      if (name.endsWith(":sum")) sums[name.slice(0, -4)] = (sums[name.slice(0, -4)] ?? 0) + value;
    }
  }
  return { logprobs, logprobGap, sums };
}

/**
 * Applies what was accumulated. With no row to train the step is made with a learning rate of 0: weights stay, and model
 * and run go on counting alike.
 */
export function stepModel(
  model: TrainableModel,
  rows: readonly StoredTrainingRow[],
  config: RunConfig,
  options: { readonly seqId: number; readonly expectStep: number },
): Promise<OptimResult> {
  const adam = adamSpec(config);
  const empty = !rows.some((row) => row.sent);
  return model.optimStep(empty ? { ...adam, learningRate: 0, weightDecay: 0 } : adam, options);
}

/** A stored row as the wire's datum. @throws RangeError when ids, mask and logprobs do not fit each other */
export function storedDatum(row: StoredTrainingRow): TrainingDatum {
  const mask = encodeMask(row.mask.flatMap(({ count, reason }) => new Array<typeof reason>(count).fill(reason)));
  const { advantage, scale, tokens } = row;
  const ranges = [{ start: 0, end: tokens.length }];
  return toDatum({ ranges, mask, advantage, scale }, { segments: segmentsOf(row), turns: [] });
}

/** The row's tokens as segments: runs of sampled tokens (those with a logprob) and of others. */
function segmentsOf({ tokens, logprobs }: StoredTrainingRow): Segment[] {
  const segments: Segment[] = [];
  for (let start = 0; start < tokens.length; ) {
    const sampled = logprobs[start] != null;
    let end = start + 1;
    while (end < tokens.length && (logprobs[end] != null) === sampled) end++;
    segments.push({
      index: segments.length,
      origin: sampled ? "sampled" : "observation",
      tokens: tokens.slice(start, end),
      logprobs: sampled ? logprobs.slice(start, end).map((logprob) => logprob ?? 0) : null,
      policyVersion: null,
    });
    start = end;
  }
  return segments;
}

function* chunks(rows: readonly StoredTrainingRow[]): Generator<StoredTrainingRow[]> {
  let chunk: StoredTrainingRow[] = [];
  let tokens = 0;
  for (const row of rows) {
    if (chunk.length > 0 && tokens + row.tokens.length > maxRequestTokens) {
      yield chunk;
      chunk = [];
      tokens = 0;
    }
    chunk.push(row);
    tokens += row.tokens.length;
  }
  if (chunk.length > 0) yield chunk;
}

function gapOf(datum: TrainingDatum | undefined, trainer: readonly number[]): number | null {
  let gap: number | null = null;
  for (const [t, weight] of (datum?.weights ?? []).entries()) {
    const ours = datum?.logprobs[t];
    const theirs = trainer[t];
    if (weight !== 0 && ours !== undefined && theirs !== undefined) gap = maxOf(gap, Math.abs(theirs - ours));
  }
  return gap;
}

const maxOf = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : Math.max(a, b));
