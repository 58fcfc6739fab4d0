/**
 * What is learnt from a step's rollouts, and how. Advantages, masks and denominators are computed by packages/rl and travel as
 * numbers; the trainer hears a named loss and its settings.
 */
import { z } from "zod";
import { label } from "./label.ts";

const bound = (what: string) => z.number().positive().max(1e6).nullable().default(null).describe(what);

/** A penalty for leaving the policy that the run began with (its version 0, after any warm start). */
export const KlConfig = z.strictObject({
  coefficient: z.number().min(0).max(100).default(0).describe("Weight of the KL penalty; 0 = none, no reference kept"),
  placement: z
    .enum(["loss", "reward"])
    .default("loss")
    .describe("A term of each token's loss, or taken off the rollout's reward before advantages"),
  estimator: z.enum(["k1", "k2", "k3"]).default("k3").describe("Per-token estimator of KL(policy ‖ reference)"),
});

/** ratio = the trainer's probability of a token ÷ the sampler's, before the update. */
export const OffPolicyConfig = z.strictObject({
  weight: z
    .enum(["none", "token", "sequence"])
    .default("none")
    .describe("Truncated importance weight: of each token's ratio, or of the product over its rollout"),
  weightCap: z.number().gt(0).max(1e6).default(2).describe("Largest importance weight"),
  sequenceMask: z
    .enum(["none", "product", "geometric"])
    .default("none")
    .describe("Leave out rollouts whose product (or geometric mean) of ratios leaves the bounds below"),
  sequenceLow: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .default(null)
    .describe("Lower bound of sequenceMask; null = 0.5, or 0.99 for geometric"),
  sequenceHigh: z
    .number()
    .min(1)
    .max(1e6)
    .nullable()
    .default(null)
    .describe("Upper bound of sequenceMask; null = 2, or 1.01 for geometric"),
  outlierLow: bound("Leave out rollouts that hold a token with a smaller ratio; null = no bound"),
  outlierHigh: bound("Leave out rollouts that hold a token with a larger ratio; null = no bound"),
  tokenLow: bound("Leave out single tokens with a smaller ratio; null = no bound"),
  tokenHigh: bound("Leave out single tokens with a larger ratio; null = no bound"),
  stalenessDecay: z
    .number()
    .min(0.01)
    .max(1)
    .default(1)
    .describe("Weight of a token per version that it is older than the learner; 1 = all alike"),
});
export type OffPolicyConfig = z.infer<typeof OffPolicyConfig>;

export const AlgorithmConfig = z.strictObject({
  groupsPerStep: z.int().min(1).max(4096).default(16).describe("Task instances per step"),
  groupSize: z.int().min(1).max(256).default(8).describe("Rollouts per instance"),
  advantage: z
    .enum(["rloo", "grpo", "dr-grpo", "maxrl", "reinforce++"])
    .default("rloo")
    .describe("How rewards become advantages: within their group, or (reinforce++) within the batch"),
  batchNormalise: z
    .boolean()
    .default(false)
    .describe("Bring the batch's advantages to mean 0 and variance 1 over its sampled tokens"),
  loss: label(50).default("ppo").describe("Named loss of the backend"),
  clipLow: z.number().min(0).max(1).default(0.2).describe("Ratio clip below 1"),
  clipHigh: z.number().min(0).max(10).default(0.28).describe("Ratio clip above 1"),
  dualClip: z.number().gt(1).max(100).nullable().default(3).describe("Lower bound for negative advantages; null = off"),
  normalisation: z
    .enum(["token-mean", "sequence-mean", "constant", "prompt-mean"])
    .default("constant")
    .describe("Loss denominator; constant = sequences × normaliserTokens"),
  normaliserTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe("L of the constant normaliser; null = maxContextTokens"),
  kl: KlConfig.prefault({}),
  entropyCoefficient: z.number().min(0).max(10).default(0).describe("Weight of the entropy bonus; 0 = none"),
  offPolicy: OffPolicyConfig.prefault({}),
  learningRate: z.number().positive().max(1).default(1e-6).describe("AdamW learning rate"),
  warmupSteps: z
    .int()
    .min(0)
    .max(100_000)
    .default(0)
    .describe("First steps, over which the learning rate rises to its value"),
  decay: z
    .enum(["constant", "linear", "cosine"])
    .default("constant")
    .describe("How the learning rate falls after the warm-up, toward 0 after the run's last step"),
  beta1: z.number().min(0).max(0.999999).default(0.9),
  beta2: z.number().min(0).max(0.9999999).default(0.95),
  // As the GPU worker has it: float32 rounds less away, and a weight without a gradient would become 0 ÷ 0.
  eps: z.number().min(1e-15).max(1).default(1e-8),
  weightDecay: z.number().min(0).max(1).default(0),
  gradClipNorm: z.number().min(0).max(1e9).default(1).describe("Global norm clip; 0 = off"),
  trainCut: z
    .boolean()
    .default(false)
    .describe("Also train rollouts that were cut (turn limit, context, length, loop)"),
  groupPolicy: z
    .enum(["shrink", "drop-group", "wait"])
    .default("shrink")
    .describe("What an unscored rollout does to its group"),
  filterZeroVariance: z.boolean().default(true).describe("Skip the forward pass of groups whose rewards are all equal"),
  microBatchTokens: z.int().min(64).max(1_048_576).default(16_384).describe("Tokens per micro-batch"),
});
export type AlgorithmConfig = z.infer<typeof AlgorithmConfig>;

/** Must the trainer compute its own logprobs of a step's rows before it is known what they weigh? */
export const correctsRows = ({ weight, sequenceMask, stalenessDecay, ...bounds }: OffPolicyConfig): boolean =>
  weight !== "none" ||
  sequenceMask !== "none" ||
  stalenessDecay < 1 ||
  [bounds.outlierLow, bounds.outlierHigh, bounds.tokenLow, bounds.tokenHigh].some((value) => value !== null);
