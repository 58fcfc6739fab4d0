/**
 * Rows → micro-batches by token count. The result of an update must not depend on this: losses are summed and every
 * denominator is already in the rows.
 */

/**
 * First-fit decreasing. A row longer than the budget gets a batch of its own.
 * @param lengths tokens of each row @param budget tokens of one micro-batch
 * @returns row indices per batch; longest first, equal lengths in row order
 */
export function microBatches(lengths: readonly number[], budget: number): number[][] {
  const order = lengths.map((length, row) => ({ length, row })).sort((a, b) => b.length - a.length || a.row - b.row);
  const batches: { rows: number[]; tokens: number }[] = [];
  for (const { length, row } of order) {
    const batch = batches.find((candidate) => candidate.tokens + length <= budget);
    if (batch === undefined) batches.push({ rows: [row], tokens: length });
    else {
      batch.rows.push(row);
      batch.tokens += length;
    }
  }
  return batches.map((batch) => batch.rows);
}
