/** Ours against SkyRL's training functions and the losses of its Tinker server. */
import type { LossName } from "@rolldeck/rl/losses";
import { keepsSequence, keptTokens, sequenceRatio, sequenceTisWeight, tisWeights } from "@rolldeck/rl/off-policy";
import { type FidelityBatch, fidelityClip } from "@rolldeck/rl/testing/fidelity-batches";
import type { Comparison } from "./comparison.ts";
import { absoluteKlDiffers, singlesDiffer, spansDiffer } from "./known-differences.ts";
import { atTokens, batchLoss, klOf, type LossOptions, rowAdvantages, rowScales } from "./our-numbers.ts";
import { batchNormalised, normalisedOverPadding, reinforcePlusPlus } from "./our-reinforce.ts";
import type { Numbers } from "./reference-output.ts";

const trainer = { distribution: "skyrl" };
const utils = (name: string) => ({ ...trainer, against: `skyrl ppo_utils.${name}` });
const corrections = (name: string) => ({ ...trainer, against: `skyrl off_policy_correction_utils.${name}` });
const ones = (batch: FidelityBatch) => batch.rewards.map(() => 1);

const advantages: Comparison[] = [
  {
    op: "advantage/grpo",
    what: "advantage grpo",
    ...utils("compute_grpo_outcome_advantage"),
    ...singlesDiffer("grpo", "(r − μ) / (s + 1e-6) with μ = 0, s = 1", (reward) => reward / (1 + 1e-6)),
  },
  {
    op: "advantage/dr-grpo",
    what: "advantage dr-grpo",
    ...utils("compute_grpo_outcome_advantage"),
    ...singlesDiffer("dr-grpo", "r − μ with μ = 0", (reward) => reward),
  },
  {
    op: "advantage/maxrl",
    what: "advantage maxrl",
    ...utils("compute_maxrl_advantage"),
    ...singlesDiffer("maxrl", "r", (reward) => reward),
  },
  {
    op: "advantage/rloo",
    what: "advantage rloo",
    ...utils("compute_rloo_outcome_advantage"),
    ours: (batch) => ({ advantages: atTokens(batch, rowAdvantages(batch, "rloo")) }),
  },
  {
    op: "advantage/reinforce++",
    what: "advantage reinforce++",
    ...utils("compute_reinforce_plus_plus_outcome_advantage"),
    ours: reinforcePlusPlus,
    differs: spansDiffer,
  },
];

const normalisations: Comparison[] = [
  {
    op: "normalise/masked-whiten",
    what: "batch normalisation",
    ...utils("masked_whiten"),
    ours: batchNormalised,
  },
  {
    op: "normalise/trainer",
    what: "batch normalisation",
    ...trainer,
    against: "skyrl RayPPOTrainer._normalize_advantages",
    ours: batchNormalised,
    differs: {
      ours: "(x − μ) / √(σ² + 1e-8), μ and σ² (ddof 1) over the M trained tokens",
      theirs:
        "(x − m) / √(Σ(x − m)² / M), m the mean over every place of the array, padding and masked tokens as zeros",
      mapping: "x = ours · √(σ² + 1e-8) + μ, then their m and deviation",
      mapped: normalisedOverPadding,
    },
  },
];

const loss = (
  op: string,
  what: string,
  name: LossName,
  against: string,
  options: (batch: FidelityBatch) => LossOptions = () => ({}),
  given = "",
): Comparison => ({
  op,
  what,
  given,
  ...utils(against),
  ours: (batch) => batchLoss(batch, name, options(batch)),
});

const losses: Comparison[] = [
  loss("loss/regular", "loss ppo", "ppo", "ppo_policy_loss (regular)"),
  loss("loss/dual_clip", "loss ppo, dual clip", "ppo", "ppo_policy_loss (dual_clip)", () => ({ clip: fidelityClip })),
  loss("loss/cispo", "loss cispo", "cispo", "compute_policy_loss_cispo"),
  loss("loss/gspo", "loss gspo", "gspo", "gspo_policy_loss"),
  loss("loss/importance_sampling", "loss importance_sampling", "importance_sampling", "importance_sampling_loss"),
  loss(
    "loss/cross_entropy",
    "loss cross_entropy",
    "cross_entropy",
    "cross_entropy_loss",
    (batch) => ({ advantages: ones(batch) }),
    "weight 1 per trained token",
  ),
];

const reductionNames = {
  token_mean: "token-mean",
  sequence_mean: "sequence-mean",
  seq_mean_token_sum_norm: "constant",
  prompt_mean: "prompt-mean",
} as const;

const reductions = Object.entries(reductionNames).map(
  ([theirs, ours]): Comparison => ({
    op: `reduction/${theirs}`,
    what: `reduction ${ours}, under ppo with dual clip`,
    given: ours === "constant" ? "L = max_seq_len" : "",
    ...utils(`apply_loss_reduction_to_advantages_minibatch (${theirs})`),
    ours: (batch) => {
      const scales = rowScales(batch, ours);
      return {
        ...batchLoss(batch, "ppo", { clip: fidelityClip, scales }),
        advantages: atTokens(
          batch,
          batch.advantages.map((advantage, row) => advantage * (scales[row] ?? 0)),
        ),
      };
    },
  }),
);

const kl: Comparison[] = [
  ...(["k1", "k2", "k3"] as const).map((estimator) => ({
    op: `kl/${estimator}`,
    what: `KL ${estimator}`,
    ...utils(`compute_approx_kl (${estimator})`),
    ours: klOf(estimator),
  })),
  { op: "kl/abs", what: "KL abs", ...utils("compute_approx_kl (abs)"), ...absoluteKlDiffers },
];

const each = (batch: FidelityBatch, of: (old: readonly number[], rollout: readonly number[], row: number) => number) =>
  batch.mask.map((_, row) => of(batch.old[row] ?? [], batch.rollout[row] ?? [], row));
const eachToken = (
  batch: FidelityBatch,
  of: (old: readonly number[], rollout: readonly number[], mask: readonly number[]) => number[],
) => batch.mask.map((mask, row) => of(batch.old[row] ?? [], batch.rollout[row] ?? [], mask));

const outliers = [0.25, 4] as const;
const tokens = [0.5, 2] as const;
const kept = (batch: FidelityBatch, bounds: Parameters<typeof keepsSequence>[1]): number[] =>
  each(batch, (old, rollout, row) =>
    keepsSequence(sequenceRatio(old, rollout, batch.mask[row] ?? []), bounds) ? 1 : 0,
  );
const tokenWeights = (batch: FidelityBatch) =>
  eachToken(batch, (old, rollout, mask) => tisWeights(old, rollout, mask, 2));
const sequenceWeights = (batch: FidelityBatch) =>
  each(batch, (old, rollout, row) => sequenceTisWeight(old, rollout, batch.mask[row] ?? [], 2));
const tokenKept = (batch: FidelityBatch) =>
  eachToken(batch, (old, rollout, mask) => keptTokens(old, rollout, mask, tokens));
const masked = (mask: readonly (readonly number[])[], rows: readonly number[]) =>
  mask.map((row, i) => row.map((value) => (rows[i] === 1 ? value : 0)));

const offPolicyValue = (
  op: string,
  what: string,
  against: string,
  ours: (batch: FidelityBatch) => Numbers["values"],
) => ({
  op: `off-policy/${op}`,
  what,
  ...corrections(against),
  ours: (batch: FidelityBatch): Numbers => ({ values: ours(batch) }),
});
const offPolicyLoss = (op: string, what: string, options: (batch: FidelityBatch) => LossOptions): Comparison => ({
  ...loss(`off-policy/${op}`, what, "ppo", "ppo_policy_loss + apply_off_policy_correction", options),
});

const offPolicy: Comparison[] = [
  offPolicyValue("tis-token", "token importance weight, cap 2", "compute_tis_ratio (token)", tokenWeights),
  offPolicyValue("tis-sequence", "sequence importance weight, cap 2", "compute_tis_ratio (sequence)", sequenceWeights),
  offPolicyValue("mask-product", "sequence mask, product in [0.5, 2]", "compute_sequence_mask (product)", (batch) =>
    kept(batch, { product: [0.5, 2] }),
  ),
  offPolicyValue(
    "mask-geometric",
    "sequence mask, geometric mean in [0.99, 1.01]",
    "compute_sequence_mask (geometric)",
    (batch) => kept(batch, { geometric: [0.99, 1.01] }),
  ),
  offPolicyValue("outliers", "sequences with a token outside [0.25, 4]", "compute_outlier_token_mask", (batch) =>
    kept(batch, { token: outliers }),
  ),
  offPolicyValue("token-mask", "token mask, ratio in [0.5, 2]", "compute_token_mask", tokenKept),
  offPolicyLoss("loss-tis-token", "loss ppo × token weight", (batch) => ({ weights: tokenWeights(batch) })),
  offPolicyLoss("loss-tis-sequence", "loss ppo × sequence weight", (batch) => ({
    weights: atTokens(batch, sequenceWeights(batch)),
  })),
  offPolicyLoss("loss-product", "loss ppo × token weight, product mask", (batch) => ({
    weights: tokenWeights(batch),
    mask: masked(batch.mask, kept(batch, { product: [0.5, 2] })),
  })),
  offPolicyLoss("loss-token-mask", "loss ppo, outlier and token masks", (batch) => ({
    mask: masked(tokenKept(batch), kept(batch, { token: outliers })),
  })),
];

const tinker = (["cross_entropy", "importance_sampling", "ppo", "cispo"] as const).map(
  (name): Comparison => ({
    ...loss(`tinker-loss/${name}`, `Tinker loss ${name}`, name, "", (batch) =>
      name === "cross_entropy" ? { advantages: ones(batch) } : {},
    ),
    given: name === "cross_entropy" ? "weight 1 per trained token" : "",
    against: `skyrl.tinker loss_fns.${name}_loss`,
  }),
);

export const skyrlComparisons: readonly Comparison[] = [
  ...advantages,
  ...normalisations,
  ...losses,
  ...reductions,
  ...kl,
  ...offPolicy,
  ...tinker,
];
