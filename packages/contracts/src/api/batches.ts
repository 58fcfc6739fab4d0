/** What an update trained, as rows of the neutral form (contracts/batch-row): `/api/v1/runs/{id}/steps/{step}/batch`. */
import { z } from "zod";
import { RunId } from "./runs.ts";

export const batchFormats = ["jsonl", "parquet"] as const;
export type BatchFormat = (typeof batchFormats)[number];
/** JSON Lines come in pages of at most so many tokens, or of one longer row: a page is what is read and written at one go. */
export const batchPageTokens = 65_536;
/** A Parquet file comes whole, and holds at most so many. */
export const maxParquetTokens = 1_048_576;

const Int4 = z.int().max(2_147_483_647);

export const ReadStepBatch = z.strictObject({
  runId: RunId,
  /** A number in the address. */
  step: z
    .string()
    .regex(/^[0-9]{1,9}$/, "must be a whole number")
    .transform(Number),
  format: z.enum(batchFormats).default("jsonl"),
  /** Only later rows. */
  after: Int4.min(-1).default(-1),
  /** At most so many rows. */
  limit: z.int().min(1).max(100_000).default(100_000),
});
/** The file, and the number of its last row where more rows follow. */
export const StepBatch = z.object({
  bytes: z.instanceof(Uint8Array),
  format: z.enum(batchFormats),
  fileName: z.string(),
  rows: z.int(),
  next: z.int().nullable(),
});
