/** Rows of an update in the form that shared metrics are computed from: what is stored of them, to the bit. */
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import type { SharedRow } from "@rolldeck/rl/shared-metrics";

/**
 * The rows as they will be read again once `logprobs` is stored: rounded to float32, and only where nothing was stored before.
 * @param logprobs by row number, of the tokens after the first, as the trainer returned them
 */
export function withTrainerLogprobs(
  rows: readonly StoredTrainingRow[],
  logprobs: ReadonlyMap<number, readonly number[]>,
): readonly StoredTrainingRow[] {
  return rows.map((row) => {
    const told = logprobs.get(row.row);
    const before = row.trainerLogprobs ?? row.correction?.trainerLogprobs ?? null;
    return before !== null || told === undefined ? row : { ...row, trainerLogprobs: [null, ...told.map(Math.fround)] };
  });
}

export const sharedRow = ({ mask, logprobs, correction, trainerLogprobs }: StoredTrainingRow): SharedRow => ({
  mask: correction?.mask ?? mask,
  samplerLogprobs: logprobs,
  trainerLogprobs: trainerLogprobs ?? correction?.trainerLogprobs ?? null,
});
