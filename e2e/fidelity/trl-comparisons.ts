/** Ours against TRL's GRPOTrainer._compute_loss. */
import type { Normalisation } from "@rolldeck/rl/denominators";
import type { LossName } from "@rolldeck/rl/losses";
import { fidelityClip } from "@rolldeck/rl/testing/fidelity-batches";
import type { Comparison } from "./comparison.ts";
import { batchLoss, type LossOptions, rowScales } from "./our-numbers.ts";

const trl = (options: string) => ({ distribution: "trl", against: `trl GRPOTrainer._compute_loss (${options})` });

const loss = (
  op: string,
  what: string,
  options: string,
  name: LossName,
  normalisation: Normalisation,
  ours: LossOptions = {},
  given = "",
): Comparison => ({
  op: `loss/${op}`,
  what,
  given,
  ...trl(options),
  ours: (batch) => batchLoss(batch, name, { ...ours, scales: rowScales(batch, normalisation) }),
});

export const trlComparisons: readonly Comparison[] = [
  loss("grpo", "loss ppo, sequence-mean", "loss_type grpo", "ppo", "sequence-mean"),
  loss(
    "grpo-delta",
    "loss ppo, dual clip, sequence-mean",
    "loss_type grpo, delta 3",
    "ppo",
    "sequence-mean",
    { clip: fidelityClip },
    "c = delta",
  ),
  loss(
    "grpo-kl",
    "loss ppo + 0.1 · k3, sequence-mean",
    "loss_type grpo, beta 0.1, use_bias_correction_kl false",
    "ppo",
    "sequence-mean",
    { klCoefficient: 0.1 },
  ),
  {
    ...loss(
      "grpo-kl-corrected",
      "loss ppo + 0.1 · k3, sequence-mean",
      "loss_type grpo, beta 0.1, its default use_bias_correction_kl true",
      "ppo",
      "sequence-mean",
      { klCoefficient: 0.1 },
    ),
    differs: {
      ours: "PPO term + β · k3",
      theirs: "PPO term + β · ρ · k3, with the gradient through ρ too",
      mapping: "each KL term v with gradient g becomes ρ·v with gradient ρ·(v + g)",
      mapped: (batch) =>
        batchLoss(batch, "ppo", {
          klCoefficient: 0.1,
          klTimesRatio: true,
          scales: rowScales(batch, "sequence-mean"),
        }),
    },
  },
  loss(
    "grpo-sequence",
    "loss gspo, sequence-mean",
    "loss_type grpo, importance_sampling_level sequence",
    "gspo",
    "sequence-mean",
  ),
  loss("bnpo", "loss ppo, token-mean", "loss_type bnpo", "ppo", "token-mean"),
  loss("dapo", "loss ppo, token-mean", "loss_type dapo", "ppo", "token-mean"),
  loss(
    "dr_grpo",
    "loss ppo, constant",
    "loss_type dr_grpo",
    "ppo",
    "constant",
    {},
    "L = max_completion_length; dr-grpo is this reduction with advantages r − μ",
  ),
  {
    ...loss("cispo", "loss cispo, token-mean", "loss_type cispo", "cispo", "token-mean"),
    differs: {
      ours: "−sg(clip(ρ, 1 − ε_low, 1 + ε_high)) · A · lp",
      theirs: "−sg(min(ρ, ε_high)) · A · lp: no lower bound, and ε_high bounds the ratio itself",
      mapping: "lower bound 0; ε_high = our 1 + clipHigh",
      mapped: (batch) =>
        batchLoss(batch, "cispo", {
          clip: { ...fidelityClip, low: 0, dual: null },
          scales: rowScales(batch, "token-mean"),
        }),
    },
  },
];
