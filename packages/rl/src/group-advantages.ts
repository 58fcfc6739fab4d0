/**
 * Advantages of one group: the rollouts of one task instance at one step, each counted once however many training rows
 * it has. Invariants: the answer has the length of the input; a missing reward (null, NaN, infinite) enters no statistic
 * and gets null; every other entry is finite, also for n = 1; the zero of a group without spread is exact.
 */
import type { RunConfig } from "@rolldeck/contracts/run-config";

/** Estimators that look at one group alone; the others are in batch-advantages.ts. */
export type GroupAdvantageName = Exclude<RunConfig["algorithm"]["advantage"], "reinforce++">;

/** Rewards that differ by at most this are equal: such a group teaches nothing. */
export const zeroVarianceSpread = 1e-6;

/** Keeps the quotients of GRPO and MaxRL finite. */
const quotientFloor = 1e-6;

interface GroupStatistics {
  readonly size: number;
  readonly mean: number;
  readonly spread: number;
  /** Sample standard deviation (ddof 1). */
  readonly std: number;
}

/** Null is missing; so are values that no statistic may see. */
export const isScored = (reward: number | null): reward is number => reward !== null && Number.isFinite(reward);

/** The group's scored rewards, or null when there are none. */
export function groupStatistics(rewards: readonly (number | null)[]): GroupStatistics | null {
  const scored = rewards.filter(isScored);
  if (scored.length === 0) return null;
  const mean = scored.reduce((sum, reward) => sum + reward, 0) / scored.length;
  const squares = scored.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  return {
    size: scored.length,
    mean,
    spread: scored.reduce((a, b) => Math.max(a, b)) - scored.reduce((a, b) => Math.min(a, b)),
    std: scored.length > 1 ? Math.sqrt(squares / (scored.length - 1)) : 0,
  };
}

/** True when at least one reward is there and all of them are equal within 1e-6. */
export const isZeroVariance = (rewards: readonly (number | null)[]): boolean => {
  const statistics = groupStatistics(rewards);
  return statistics !== null && statistics.spread <= zeroVarianceSpread;
};

/**
 * With μ the group's mean, s its standard deviation (ddof 1), n its size:
 * - dr-grpo A_i = r_i − μ (arXiv:2503.20783)
 * - grpo A_i = (r_i − μ) / (s + 1e-6) (arXiv:2402.03300)
 * - rloo A_i = (r_i − μ) · n / (n − 1), which is r_i minus the mean of the others (arXiv:2402.14740)
 * - maxrl A_i = (r_i − μ) / (|μ| + 1e-6): for rewards from 0 to 1 the gradient of log pass@1 (arXiv:2602.02710). The paper has no
 *   rewards below 0; the absolute value keeps the better rollout the better one when there are.
 * @param rewards (G,) verifier scores, null = not scored
 * @returns (G,) in reward units (grpo: standard deviations; maxrl: means), summing to ≈ 0 over the scored ones
 */
export function groupAdvantages(rewards: readonly (number | null)[], name: GroupAdvantageName): (number | null)[] {
  const statistics = groupStatistics(rewards);
  if (statistics === null) return rewards.map(() => null);
  const { mean, spread } = statistics;
  const scale = scales[name](statistics);
  return rewards.map((reward) => {
    if (!isScored(reward)) return null;
    return spread <= zeroVarianceSpread ? 0 : (reward - mean) * scale;
  });
}

const scales = {
  "dr-grpo": () => 1,
  grpo: ({ std }) => 1 / (std + quotientFloor),
  rloo: ({ size }) => (size > 1 ? size / (size - 1) : 0),
  maxrl: ({ mean }) => 1 / (Math.abs(mean) + quotientFloor),
} satisfies Record<GroupAdvantageName, (statistics: GroupStatistics) => number>;
