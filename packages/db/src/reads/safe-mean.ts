/**
 * Means of doubles that no sum can break. Postgres's avg of float8 fails on large values (it squares them), its division on
 * tiny ones. So SQL only adds, values scaled by 2^−20: a million of the largest doubles still fit. The division is done here.
 */
const scale = 1_048_576;

/** SQL aggregate over finite values; what is too small to matter beside anything else counts as 0. */
export const scaledSum = (expression: string, filter = "true"): string =>
  `sum(case when abs(${expression}) < 1e-280 then 0 else ${expression} / ${scale} end) filter (where ${filter})`;

/** @param sum of `scaledSum` @param min @param max of the same values: rounding never leaves them */
export function meanOf(sum: number, count: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, (sum / count) * scale));
}
