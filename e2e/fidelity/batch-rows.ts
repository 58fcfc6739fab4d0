/** A batch's rows as rollouts, and as training rows in the neutral form; infra/fidelity/cookbook/reference.py writes the same. */
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { buildBatchRows } from "@rolldeck/rl/testing/build-batch-rows";
import type { WrittenTurn } from "@rolldeck/rl/testing/build-trajectory";
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import { groupRows } from "./our-numbers.ts";

const tokenOf = (row: number, t: number): number => 10 + ((row * 31 + t * 7) % 200);

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Spans of trained tokens; the whole row where there are none. */
function spansOf(mask: readonly number[]): Span[] {
  if (!mask.includes(1)) return [{ start: 0, end: mask.length }];
  const starts = mask.flatMap((kept, t) => (kept === 1 && mask[t - 1] !== 1 ? [t] : []));
  return starts.map((start) => {
    const gap = mask.indexOf(0, start);
    return { start, end: gap === -1 ? mask.length : gap };
  });
}

/**
 * Each span is an action, each gap an observation.
 * @param forgets odd rows drop their history at a gap, so that they become several training rows
 */
export function writtenTurns(batch: FidelityBatch, row: number, forgets = true): WrittenTurn[] {
  let history = [1, 2, 3 + (row % 5)];
  let seenTo = 0;
  return spansOf(batch.mask[row] ?? []).map(({ start, end }, index) => {
    const between = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => tokenOf(row, from + i));
    const prompt = [...(forgets && index > 0 && row % 2 === 1 ? [4, 4] : history), ...between(seenTo, start)];
    const sampled = between(start, end);
    history = [...prompt, ...sampled];
    seenTo = end;
    return { prompt, sampled, logprobs: (batch.rollout[row] ?? []).slice(start, end) };
  });
}

/** Training rows with leave-one-out advantages; a row of which nothing is trained was cut, and still counts in its group. */
export function batchRows(batch: FidelityBatch, forgets = true): BatchRow[] {
  const groups = groupRows(batch).map((rows) =>
    rows.map((row) => ({
      turns: writtenTurns(batch, row, forgets),
      reward: batch.rewards[row] ?? null,
      ending: batch.mask[row]?.includes(1) ? ("answer" as const) : ("turn_limit" as const),
    })),
  );
  return buildBatchRows(groups, { advantage: "rloo", filterZeroVariance: false });
}
