/**
 * What an evaluation says about a policy, with how sure it is. Instances are the independent samples: rollouts of one
 * instance share its difficulty, so every interval is taken over instances, never over rollouts. Pure; the seed is an argument.
 */

/** Scored rollouts of one instance. */
export interface InstanceScores {
  readonly rewards: readonly number[];
  /** Same length as `rewards`. */
  readonly successes: readonly boolean[];
}
export interface Estimate {
  readonly value: number;
  /**
   * Half the width of the 95 % interval, in the unit of the value; null where the sample can't tell it: fewer than two
   * instances, or all of them equal.
   */
  readonly halfWidth: number | null;
  /** Instances that entered. */
  readonly instances: number;
}

/**
 * Chance that at least one of k rollouts succeeds, without bias: 1 − C(n−c, k) ÷ C(n, k) (arXiv:2107.03374, eq. 1).
 * @param n scored rollouts @param c successes among them @returns null when n < k
 */
export function passAtK(n: number, c: number, k: number): number | null {
  if (n < k) return null;
  let allFail = 1;
  for (let drawn = 0; drawn < k; drawn++) allFail *= Math.max(0, n - c - drawn) / (n - drawn);
  return 1 - allFail;
}

/** Mean of pass@k over the instances with at least k scored rollouts; null when there is none. */
export function passEstimate(instances: readonly InstanceScores[], k: number): Estimate | null {
  const values = instances.flatMap(({ successes }) => {
    const pass = passAtK(successes.length, successes.filter(Boolean).length, k);
    return pass === null ? [] : [pass];
  });
  return meanEstimate(values);
}

export const instanceMean = ({ rewards }: InstanceScores): number | null =>
  rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;

/** Mean with Student's 95 % interval over independent values; null without values. */
export function meanEstimate(values: readonly number[]): Estimate | null {
  const count = values.length;
  if (count === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (count === 1) return { value: mean, halfWidth: null, instances: 1 };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const halfWidth = variance === 0 ? null : tQuantile(count - 1) * Math.sqrt(variance / count);
  return { value: mean, halfWidth, instances: count };
}

/** Student's t at 97.5 %: exact for up to 3 degrees of freedom, else the expansion in 1/df (within 0.3 %). */
function tQuantile(df: number): number {
  if (df === 1) return 12.7062;
  if (df === 2) return 4.30265;
  if (df === 3) return 3.18245;
  const z = 1.959964;
  return (
    z +
    (z ** 3 + z) / (4 * df) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * df ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * df ** 3)
  );
}

export interface PairedDifference {
  /** Mean of ours − theirs over the pairs. */
  readonly difference: number;
  /** 2.5 % and 97.5 % of the resampled means. */
  readonly low: number;
  readonly high: number;
  /** Two-sided: twice the smaller share of resamples on either side of 0, at most 1. */
  readonly pValue: number;
  readonly pairs: number;
}

/**
 * Paired bootstrap over instances that both runs measured: resamples pairs with replacement.
 * @param pairs [ours, theirs] per instance @returns null with fewer than two pairs: nothing can be resampled
 */
export function pairedBootstrap(
  pairs: readonly (readonly [number, number])[],
  options: { readonly seed: number; readonly resamples: number },
): PairedDifference | null {
  const differences = pairs.map(([ours, theirs]) => ours - theirs);
  const count = differences.length;
  if (count < 2) return null;
  const random = uniform(options.seed);
  const means = new Float64Array(options.resamples);
  for (let draw = 0; draw < means.length; draw++) {
    let sum = 0;
    for (let n = 0; n < count; n++) sum += differences[Math.floor(random() * count)] ?? 0;
    means[draw] = sum / count;
  }
  means.sort();
  const at = (share: number) => means[Math.min(means.length - 1, Math.floor(share * means.length))] ?? 0;
  // A mean of exactly 0 speaks for neither side and counts half for both.
  const below = means.reduce((sum, mean) => sum + (mean < 0 ? 1 : mean === 0 ? 0.5 : 0), 0) / means.length;
  return {
    difference: differences.reduce((sum, difference) => sum + difference, 0) / count,
    low: at(0.025),
    high: at(0.975),
    pValue: Math.min(1, 2 * Math.min(below, 1 - below)),
    pairs: count,
  };
}

/** A small counter-based generator: the same seed gives the same interval everywhere. */
function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}
