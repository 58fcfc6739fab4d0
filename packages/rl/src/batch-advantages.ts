/**
 * Advantages of all groups of one step together. An estimator that looks at one group needs no more than
 * group-advantages.ts; REINFORCE++ and batch normalisation look at the whole batch.
 *
 * Invariants: a group's own statistics count each of its rollouts once, whatever its length; the statistics of the batch are
 * over its sampled tokens, as their sources define them; order of groups and rollouts does not matter; an unscored rollout
 * enters nothing and gets null; everything else is finite.
 */
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { groupAdvantages, isScored } from "./group-advantages.ts";

export interface RewardGroup {
  /** Null = not scored. */
  readonly rewards: readonly (number | null)[];
  /** Sampled tokens of each rollout: its weight in the statistics of the batch. */
  readonly sampledTokens: readonly number[];
}
export type AdvantageSettings = Pick<RunConfig["algorithm"], "advantage" | "batchNormalise">;

/** Added to the variance before its root (as in VeRL and SkyRL). */
const varianceFloor = 1e-8;

/** A square of a larger one leaves nothing of the smaller ones beside it: float64 would turn lessons into zeros. */
const largestReward = 1e6;

/**
 * reinforce++ (arXiv:2501.03262): A = (R − μ_B) / √(σ²_B + 1e-8), mean and variance over the sampled tokens of the batch, each of
 * which has its rollout's reward. `batchNormalise` does the same to the advantages of the other estimators; with `dr-grpo`
 * this is REINFORCE++ with a group baseline.
 * @returns per group and rollout, in the order given
 * @throws RangeError for a reward above a million, with the group's place
 */
export function batchAdvantages(groups: readonly RewardGroup[], settings: AdvantageSettings): (number | null)[][] {
  const { advantage, batchNormalise } = settings;
  for (const [place, { rewards }] of groups.entries()) {
    const tooLarge = rewards.find((reward) => isScored(reward) && Math.abs(reward) > largestReward);
    if (tooLarge !== undefined)
      throw new RangeError(`group ${place} has a reward of ${tooLarge}; at most ±${largestReward} can be told apart`);
  }
  const own = groups.map(({ rewards }) =>
    advantage === "reinforce++"
      ? rewards.map((reward) => (isScored(reward) ? reward : null))
      : groupAdvantages(rewards, advantage),
  );
  return advantage === "reinforce++" || batchNormalise ? whiten(own, groups) : own;
}

/** (x − μ) / √(σ² + 1e-8), σ² with ddof 1, each value weighted by its tokens. Fewer than two tokens say nothing: 0. */
function whiten(values: readonly (readonly (number | null)[])[], groups: readonly RewardGroup[]): (number | null)[][] {
  const weighted = values.flatMap((own, group) =>
    own.flatMap((value, place) =>
      value === null ? [] : [{ value, tokens: groups[group]?.sampledTokens[place] ?? 0 }],
    ),
  );
  const tokens = weighted.reduce((sum, each) => sum + each.tokens, 0);
  if (tokens < 2) return values.map((own) => own.map((value) => (value === null ? null : 0)));
  const mean = weighted.reduce((sum, each) => sum + each.value * each.tokens, 0) / tokens;
  const squares = weighted.reduce((sum, each) => sum + (each.value - mean) ** 2 * each.tokens, 0);
  const root = Math.sqrt(squares / (tokens - 1) + varianceFloor);
  return values.map((own) => own.map((value) => (value === null ? null : (value - mean) / root)));
}
