/** The middle of what was recorded, the upper of two; null where there is nothing. */
export const median = (values: readonly number[]): number | null =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? null;
