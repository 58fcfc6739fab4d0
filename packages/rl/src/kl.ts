/** Per-token estimators of KL(policy ‖ reference) from logprobs of sampled tokens (Schulman, "Approximating KL"). */
import type { RunConfig } from "@rolldeck/contracts/run-config";

export type KlEstimator = RunConfig["algorithm"]["kl"]["estimator"];

export interface KlTerm {
  /** Nats. */
  readonly value: number;
  /** d value / d logprob. */
  readonly gradient: number;
}

/** Beyond this many nats the exponential says nothing more, only overflows. */
const clamp = 20;

/** With d = logprob − reference: k1 = d, k2 = d²/2, k3 = e^−d + d − 1; d is clamped to ±20, where the gradient ends. */
export function klTerm(logprob: number, reference: number, estimator: KlEstimator): KlTerm {
  const gap = logprob - reference;
  const d = Math.max(-clamp, Math.min(clamp, gap));
  const term = {
    k1: { value: d, gradient: 1 },
    k2: { value: (d * d) / 2, gradient: d },
    k3: { value: Math.exp(-d) + d - 1, gradient: 1 - Math.exp(-d) },
  }[estimator];
  return Math.abs(gap) > clamp ? { value: term.value, gradient: 0 } : term;
}
