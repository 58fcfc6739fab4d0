/** A run's algorithm as the trainer hears it: a named loss and numbers. Denominators are in the rows already. */
import type { AdamSpec, LossSpec } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { learningRateAt } from "@rolldeck/rl/learning-rate";

/** The trainer's logprobs are those of the distribution that was sampled from. */
export const sampledTemperature = ({ agent }: RunConfig): number =>
  agent.sampling.temperature > 0 ? agent.sampling.temperature : 1;

/** What every loss takes. */
export const commonSettings = (config: RunConfig): Record<string, number> => ({
  temperature: sampledTemperature(config),
  micro_batch_tokens: config.algorithm.microBatchTokens,
});

export function lossSpec(config: RunConfig): LossSpec {
  const { algorithm } = config;
  const { kl, entropyCoefficient } = algorithm;
  const common = commonSettings(config);
  if (kl.coefficient > 0 && kl.placement === "loss") {
    common.kl_coef = kl.coefficient;
    common.kl_estimator = { k1: 1, k2: 2, k3: 3 }[kl.estimator];
  }
  if (entropyCoefficient > 0) common.entropy_coef = entropyCoefficient;
  if (algorithm.loss === "importance_sampling") return { name: algorithm.loss, config: common };
  const clip = {
    ...common,
    clip_low_threshold: 1 - algorithm.clipLow,
    clip_high_threshold: 1 + algorithm.clipHigh,
  };
  const dual = algorithm.loss === "ppo" ? algorithm.dualClip : null;
  return { name: algorithm.loss, config: dual === null ? clip : { ...clip, dual_clip_c: dual } };
}

/** @param step of the run, from 1 */
export const adamSpec = ({ algorithm, budget }: RunConfig, step: number): AdamSpec => ({
  learningRate: learningRateAt(algorithm, step, budget.steps),
  beta1: algorithm.beta1,
  beta2: algorithm.beta2,
  eps: algorithm.eps,
  weightDecay: algorithm.weightDecay,
  gradClipNorm: algorithm.gradClipNorm,
});
