/** Per-token estimators of KL(policy ‖ reference) from logprobs of sampled tokens (Schulman, "Approximating KL"). */

export type KlEstimator = "k1" | "k2" | "k3";

/** Beyond this many nats the exponential says nothing more, only overflows. */
const clamp = 20;

/** With d = logprob − reference: k1 = d, k2 = d²/2, k3 = e^−d + d − 1. In nats; d is clamped to ±20. */
export function klTerm(logprob: number, reference: number, estimator: KlEstimator): number {
  const d = Math.max(-clamp, Math.min(clamp, logprob - reference));
  if (estimator === "k1") return d;
  return estimator === "k2" ? (d * d) / 2 : Math.exp(-d) + d - 1;
}
