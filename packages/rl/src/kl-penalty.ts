/**
 * KL in the reward: what a rollout pays for having left the reference policy, before advantages are computed. Summed over the
 * rollout's trained tokens, each once, as the sampler's logprobs say it; a rollout of which no token is trained pays nothing.
 */
import type { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";
import { klTerm } from "./kl.ts";
import type { TokenMask } from "./mask-reasons.ts";

/** One row; every list has its length. */
export interface ReferencedRow {
  readonly rolloutId: string;
  readonly mask: readonly TokenMask[];
  readonly logprobs: readonly (number | null)[];
  readonly refLogprobs: readonly (number | null)[];
}

/**
 * coefficient · Σ k(sampler, reference) by rollout id, in reward units.
 * @throws RangeError when a token that is to be trained has no finite logprob of both kinds
 */
export function klPenalties(rows: readonly ReferencedRow[], kl: AlgorithmConfig["kl"]): Map<string, number> {
  const penalties = new Map<string, number>();
  for (const { rolloutId, mask, logprobs, refLogprobs } of rows) {
    const sum = mask.reduce((total, reason, t) => {
      if (reason !== null) return total;
      const { value } = klTerm(logprobs[t] ?? Number.NaN, refLogprobs[t] ?? Number.NaN, kl.estimator);
      if (!Number.isFinite(value))
        throw new RangeError(`a trained token of rollout ${rolloutId} has no reference logprob`);
      return total + value;
    }, 0);
    penalties.set(rolloutId, (penalties.get(rolloutId) ?? 0) + kl.coefficient * sum);
  }
  return penalties;
}
