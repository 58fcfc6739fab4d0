import type { MaskReason } from "@rolldeck/contracts/endings";
import type { TokenRange } from "@rolldeck/contracts/segments";
import type pg from "pg";

/** `count` tokens in a row with the same fate; null = trained. */
export interface MaskRun {
  readonly count: number;
  readonly reason: MaskReason | null;
}
export interface TrainingRow {
  readonly row: number;
  readonly rolloutId: string;
  readonly attempt: number;
  /** Over the trajectory's tokens, in order. */
  readonly ranges: readonly TokenRange[];
  readonly mask: readonly MaskRun[];
  readonly advantage: number;
  /** weight ÷ denominator: what every token's advantage is multiplied by before it is sent. */
  readonly scale: number;
  /** False: counted, but no forward pass. */
  readonly sent: boolean;
}
/** A stored row with its tokens, as an update sends it again. */
export interface StoredTrainingRow extends TrainingRow {
  readonly tokens: readonly number[];
  /** Sampling logprobs; null where not sampled. */
  readonly logprobs: readonly (number | null)[];
}
/** Stores a step's rows once: a second call with the same step leaves the first rows. @throws FencedError */
export function writeTrainingRows(
  _pool: pg.Pool,
  _step: { readonly stepId: string; readonly claim: number },
  _rows: readonly TrainingRow[],
): Promise<{ written: boolean }> {
  return Promise.reject(new Error("under construction"));
}
/** Rows of the done and updating train steps fromStep…toStep, in order: what a replay sends. */
export function readTrainingRows(
  _pool: pg.Pool,
  _runId: string,
  _fromStep: number,
  _toStep: number,
): Promise<{ stepId: string; step: number; rows: StoredTrainingRow[] }[]> {
  return Promise.reject(new Error("under construction"));
}
/** Annotates rows with what the trainer computed: one logprob per token after the first. @throws FencedError */
export function annotateTrainerLogprobs(
  _pool: pg.Pool,
  _step: { readonly stepId: string; readonly claim: number },
  _rows: readonly { readonly row: number; readonly logprobs: readonly (number | null)[] }[],
): Promise<void> {
  return Promise.reject(new Error("under construction"));
}
