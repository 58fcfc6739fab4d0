/** A training row → Tinker's datum: targets are the tokens after the first, and every list is aligned with them. */
import type { MaskReason } from "@rolldeck/contracts/endings";
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { Segment } from "@rolldeck/contracts/segments";
import { encodeMask, spanMask } from "./mask-reasons.ts";
import { toDatum } from "./to-datum.ts";

/** What a datum takes of a row (contracts/batch-row); lists have the row's length. */
export interface DatumSource {
  readonly tokens: readonly number[];
  readonly mask: readonly { readonly count: number; readonly reason: MaskReason | null }[];
  readonly samplerLogprobs: readonly (number | null)[];
  readonly advantage: number;
  readonly scale: number;
  /** Null: nothing was corrected, and the loss compares with the sampler's logprobs instead of the trainer's. */
  readonly tokenWeights: readonly number[] | null;
  readonly trainerLogprobs: readonly (number | null)[] | null;
  readonly refLogprobs: readonly (number | null)[] | null;
}

/** @throws RangeError when ids, mask and logprobs do not fit each other */
export function exportTinker(row: DatumSource): TrainingDatum {
  const { advantage, scale, tokens, tokenWeights, trainerLogprobs, refLogprobs } = row;
  const mask = encodeMask(spanMask(row.mask));
  const later = {
    ...(tokenWeights === null ? {} : { tokenWeights, oldLogprobs: trainerLogprobs ?? [] }),
    ...(refLogprobs === null ? {} : { refLogprobs }),
  };
  const ranges = [{ start: 0, end: tokens.length }];
  return toDatum({ ranges, mask, advantage, scale, ...later }, { segments: segmentsOf(row), turns: [] });
}

/** The row's tokens as segments: runs of sampled tokens (those with a logprob) and of others. */
function segmentsOf({ tokens, samplerLogprobs: logprobs }: DatumSource): Segment[] {
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
