/** What a step's update trained, as a file: JSON Lines in pages, or one Parquet file. */
import { batchPageTokens, maxParquetTokens, type ReadStepBatch, type StepBatch } from "@rolldeck/contracts/api/batches";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { TooLargeError } from "@rolldeck/contracts/errors";
import { measureBatch, readBatch } from "@rolldeck/db/reads/read-batch";
import type { Pool } from "pg";
import type { z } from "zod";
import { batchParquet } from "./batch-parquet.ts";

type Input = z.output<typeof ReadStepBatch>;

/** @throws NotFoundError, ConflictError, TooLargeError */
export async function stepBatch(
  pool: Pool,
  input: Input,
  limits: { readonly page: number; readonly parquet: number } = { page: batchPageTokens, parquet: maxParquetTokens },
): Promise<z.output<typeof StepBatch>> {
  const { runId, step, format } = input;
  const file = { format, fileName: `${runId}-step-${step}.${format}` };
  if (format === "jsonl") {
    const { rows, next } = await readBatch(pool, { ...input, maxTokens: limits.page });
    return { ...file, bytes: batchLines(rows), rows: rows.length, next };
  }
  const { rows, tokens, next } = await measureBatch(pool, input);
  if (tokens > limits.parquet)
    throw new TooLargeError(
      `${rows} rows of step ${step} hold ${tokens} tokens, over ${limits.parquet}: ask for fewer with limit and after, or for format=jsonl, which comes in pages`,
    );
  return { ...file, bytes: await batchParquet(pagesOf(pool, input, limits.page)), rows, next };
}

async function* pagesOf(pool: Pool, input: Input, maxTokens: number): AsyncGenerator<readonly BatchRow[], void, void> {
  let left = input.limit;
  let after: number | null = input.after;
  while (after !== null && left > 0) {
    const page: Awaited<ReturnType<typeof readBatch>> = await readBatch(pool, {
      ...input,
      after,
      limit: left,
      maxTokens,
    });
    left -= page.rows.length;
    after = page.next;
    yield page.rows;
  }
}

/** One row a line, each line ended. */
const batchLines = (rows: readonly BatchRow[]): Uint8Array<ArrayBuffer> =>
  new TextEncoder().encode(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
