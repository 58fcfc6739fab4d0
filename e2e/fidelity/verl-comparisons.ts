/** Ours against VeRL's core_algos. */
import { fidelityClip, fidelityNormaliser } from "@rolldeck/rl/testing/fidelity-batches";
import type { Comparison } from "./comparison.ts";
import { absoluteKlDiffers, emptyRowsDiffer, shiftedSpansDiffer, singlesDiffer } from "./known-differences.ts";
import { batchLoss, klOf, rowScales } from "./our-numbers.ts";
import { reinforcePlusPlus } from "./our-reinforce.ts";

const verl = (name: string) => ({ distribution: "verl", against: `verl core_algos.${name}` });

const advantages: Comparison[] = [
  {
    op: "advantage/grpo",
    what: "advantage grpo",
    ...verl("compute_grpo_outcome_advantage"),
    ...singlesDiffer("grpo", "(r − μ) / (s + 1e-6) with μ = 0, s = 1", (reward) => reward / (1 + 1e-6)),
  },
  {
    op: "advantage/dr-grpo",
    what: "advantage dr-grpo",
    ...verl("compute_grpo_outcome_advantage"),
    ...singlesDiffer("dr-grpo", "r − μ with μ = 0", (reward) => reward),
  },
  {
    op: "advantage/rloo",
    what: "advantage rloo",
    ...verl("compute_rloo_outcome_advantage"),
    ...singlesDiffer("rloo", "r", (reward) => reward),
  },
  {
    op: "advantage/reinforce++",
    what: "advantage reinforce++",
    ...verl("compute_reinforce_plus_plus_outcome_advantage"),
    ours: reinforcePlusPlus,
    differs: shiftedSpansDiffer,
  },
];

const aggregations: Comparison[] = [
  {
    op: "agg-loss/token-mean",
    what: "reduction token-mean",
    ...verl("agg_loss (token-mean)"),
    ours: (batch) => batchLoss(batch, "importance_sampling", { scales: rowScales(batch, "token-mean") }),
  },
  {
    op: "agg-loss/seq-mean-token-mean",
    what: "reduction sequence-mean",
    ...verl("agg_loss (seq-mean-token-mean)"),
    ...emptyRowsDiffer("importance_sampling", "sequence-mean"),
  },
  {
    op: "agg-loss/seq-mean-token-sum",
    what: "reduction constant",
    ...verl("agg_loss (seq-mean-token-sum)"),
    ...emptyRowsDiffer("importance_sampling", "constant", { factor: fidelityNormaliser }),
  },
  {
    op: "agg-loss/seq-mean-token-sum-norm",
    what: "reduction constant",
    ...verl("agg_loss (seq-mean-token-sum-norm)"),
    ...emptyRowsDiffer("importance_sampling", "constant"),
  },
];

const losses: Comparison[] = [
  {
    op: "loss/vanilla",
    what: "loss ppo, dual clip, token-mean",
    ...verl("compute_policy_loss_vanilla"),
    ours: (batch) => batchLoss(batch, "ppo", { clip: fidelityClip, scales: rowScales(batch, "token-mean") }),
  },
  {
    op: "loss/cispo",
    what: "loss cispo, token-mean",
    ...verl("compute_policy_loss_cispo"),
    ours: (batch) => batchLoss(batch, "cispo", { scales: rowScales(batch, "token-mean") }),
  },
  {
    op: "loss/gspo",
    what: "loss gspo, sequence-mean",
    ...verl("compute_policy_loss_gspo"),
    ...emptyRowsDiffer("gspo", "sequence-mean"),
  },
];

const estimators = { kl: "k1", k1: "k1", mse: "k2", k2: "k2", low_var_kl: "k3", k3: "k3" } as const;
const kl: Comparison[] = [
  ...Object.entries(estimators).map(([theirs, ours]) => ({
    op: `kl/${theirs}`,
    what: `KL ${ours}`,
    ...verl(`kl_penalty (${theirs})`),
    ours: klOf(ours),
  })),
  { op: "kl/abs", what: "KL abs", ...verl("kl_penalty (abs)"), ...absoluteKlDiffers },
];

export const verlComparisons: readonly Comparison[] = [...advantages, ...aggregations, ...losses, ...kl];
