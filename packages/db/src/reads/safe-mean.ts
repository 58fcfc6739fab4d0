/**
 * Means of doubles that no sum can break. Postgres's avg of float8 fails on large values (it squares them), its sum when it
 * leaves the range. So SQL only adds; where plain addition fails, it adds values scaled by 2^−20, of which a million of the
 * largest fit. The division is done here.
 */
export interface SumRule {
  /** What one unit of the sum stands for: values were divided by this. */
  readonly scale: number;
  /** SQL aggregate over the values that `filter` lets through. */
  readonly sql: (expression: string, filter: string) => string;
}

export const plainSum: SumRule = {
  scale: 1,
  sql: (expression, filter) => `sum(${expression}) filter (where ${filter})`,
};

/** What is too small to matter beside anything that needed scaling counts as 0: dividing it would underflow. */
export const scaledSum: SumRule = {
  scale: 1_048_576,
  sql: (expression, filter) =>
    `sum(case when abs(${expression}) < 1e-280 then 0 else ${expression} / 1048576 end) filter (where ${filter})`,
};

/** @param min @param max of the same values: rounding never leaves them */
export const meanOf = (sum: number, rule: SumRule, count: number, min: number, max: number): number =>
  Math.min(max, Math.max(min, (sum / count) * rule.scale));
