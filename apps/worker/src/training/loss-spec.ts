/** A run's algorithm as the trainer hears it: a named loss and numbers. Denominators are in the rows already. */
import type { AdamSpec, LossSpec } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";

export function lossSpec({ algorithm, agent }: RunConfig): LossSpec {
  const common = {
    // The trainer's logprobs are those of the distribution that was sampled from.
    temperature: agent.sampling.temperature > 0 ? agent.sampling.temperature : 1,
    micro_batch_tokens: algorithm.microBatchTokens,
  };
  if (algorithm.loss !== "ppo") return { name: algorithm.loss, config: common };
  const clip = {
    ...common,
    clip_low_threshold: 1 - algorithm.clipLow,
    clip_high_threshold: 1 + algorithm.clipHigh,
  };
  return { name: "ppo", config: algorithm.dualClip === null ? clip : { ...clip, dual_clip_c: algorithm.dualClip } };
}

export const adamSpec = ({ algorithm }: RunConfig): AdamSpec => ({
  learningRate: algorithm.learningRate,
  beta1: algorithm.beta1,
  beta2: algorithm.beta2,
  eps: algorithm.eps,
  weightDecay: algorithm.weightDecay,
  gradClipNorm: algorithm.gradClipNorm,
});
