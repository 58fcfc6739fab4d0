/** Splits whole numbers by weights with the largest-remainder method. Ties go to the earlier entry. */

/** Positions of the `count` largest values; ties by position. */
function largest(values: readonly number[], count: number): number[] {
  return values
    .map((value, at) => ({ value, at }))
    .sort((a, b) => b.value - a.value || a.at - b.at)
    .slice(0, count)
    .map(({ at }) => at);
}

/** Floors of the quotas; a quota that is whole but for rounding counts as whole. */
function quotas(total: number, weights: readonly number[]): { floors: number[]; fractions: number[] } {
  const sum = weights.reduce((a, b) => a + b, 0);
  const exact = weights.map((weight) => (total * weight) / sum);
  const floors = exact.map((quota) => Math.floor(quota + 1e-9));
  return { floors, fractions: exact.map((quota, at) => Math.max(0, quota - (floors[at] ?? 0))) };
}

/**
 * One share-out that no entry may exceed its cap (null = none); what a cap leaves over goes to the others.
 * @returns counts whose sum is `total`, or the sum of the caps when that is smaller
 */
export function apportion(total: number, weights: readonly number[], caps: readonly (number | null)[]): number[] {
  const counts = weights.map(() => 0);
  for (let left = total; left > 0; ) {
    const open = weights.flatMap((_, at) => ((caps[at] ?? Number.POSITIVE_INFINITY) > (counts[at] ?? 0) ? [at] : []));
    if (open.length === 0) break;
    const { floors, fractions } = quotas(
      left,
      open.map((at) => weights[at] ?? 0),
    );
    const extra = new Set(largest(fractions, left - floors.reduce((a, b) => a + b, 0)));
    for (const [nth, at] of open.entries()) {
      const before = counts[at] ?? 0;
      const wished = before + (floors[nth] ?? 0) + (extra.has(nth) ? 1 : 0);
      counts[at] = Math.min(wished, caps[at] ?? Number.POSITIVE_INFINITY);
      left -= (counts[at] ?? 0) - before;
    }
  }
  return counts;
}

/**
 * The same share-out repeated round after round. Remainders are carried over, so that a small weight gets its turn too: after
 * n rounds an entry has had n quotas within a few units.
 * @param round from 1
 * @returns what each entry gets in this round, and what it had in all rounds before
 */
export function apportionRound(
  perRound: number,
  weights: readonly number[],
  round: number,
): { counts: number[]; before: number[] } {
  const { floors, fractions } = quotas(perRound, weights);
  const spare = perRound - floors.reduce((a, b) => a + b, 0);
  const extras = weights.map(() => 0);
  let lastExtra = new Set<number>();
  // Without a remainder every round is alike: no need to replay the rounds before.
  for (let n = 1; spare > 0 && n <= round; n++) {
    for (const at of lastExtra) extras[at] = (extras[at] ?? 0) + 1;
    lastExtra = new Set(
      largest(
        fractions.map((fraction, at) => n * fraction - (extras[at] ?? 0)),
        spare,
      ),
    );
  }
  return {
    counts: floors.map((floor, at) => floor + (lastExtra.has(at) ? 1 : 0)),
    before: floors.map((floor, at) => floor * (round - 1) + (extras[at] ?? 0)),
  };
}
