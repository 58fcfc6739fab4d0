/**
 * Numbers that mean the same whatever backend trained a step: packages/rl computes them from the step's stored rows and
 * rollouts, by one function. Trainers log numbers of the same name that are not the same: each definition has a name of its own
 * here, and says who logs it.
 */
import type { MetricDefinition } from "./metric-definition.ts";

/** A trainer that logs a number by this definition, and what it calls it. */
export interface MetricUser {
  readonly who: string;
  readonly as: string;
}
export interface SharedMetricDefinition extends MetricDefinition {
  readonly usedBy: readonly MetricUser[];
}

const trained = "over the tokens that the step trained, from what is stored of it";
const shared = { section: "shared" } as const;

export const sharedMetricDefinitions = {
  "shared/reward": {
    ...shared,
    title: "Reward, recomputed",
    unit: "reward",
    better: "higher",
    definition: "Mean reward of the step's scored rollouts, cut ones included; from the stored rollouts.",
    usedBy: [],
  },
  "shared/success": {
    ...shared,
    title: "Success, recomputed",
    unit: "fraction",
    better: "higher",
    definition: "Scored rollouts that the verifier called a success ÷ scored rollouts; from the stored rollouts.",
    usedBy: [],
  },
  "shared/trained-tokens": {
    ...shared,
    title: "Tokens trained",
    unit: "tokens",
    better: "none",
    definition:
      "Tokens of the step's stored rows with loss mask 1, after off-policy corrections; a token that stands in several rows is trained in one.",
    usedBy: [],
  },
  "shared/entropy": {
    ...shared,
    title: "Entropy of trained tokens",
    unit: "nats/token",
    better: "none",
    definition: `Mean of −(sampler's logprob) ${trained}: a sampled estimate, at the sampling temperature.`,
    usedBy: [{ who: "tinker-cookbook", as: "optim/entropy" }],
  },
  "shared/mismatch-logprob": {
    ...shared,
    title: "Mismatch, mean |Δlogprob|",
    unit: "nats",
    better: "lower",
    definition: `Mean of |trainer's logprob − sampler's logprob| ${trained}.`,
    usedBy: [{ who: "SkyRL", as: "policy/rollout_train_logprobs_abs_diff_mean" }],
  },
  "shared/mismatch-prob": {
    ...shared,
    title: "Mismatch, mean |Δprob|",
    unit: "probability",
    better: "lower",
    definition: `Mean of |exp(trainer's logprob) − exp(sampler's logprob)| ${trained}.`,
    usedBy: [{ who: "VeRL", as: "training/rollout_probs_diff_mean" }],
  },
  "shared/mismatch-signed": {
    ...shared,
    title: "Mismatch, signed mean",
    unit: "nats",
    better: "none",
    definition: `Mean of sampler's logprob − trainer's logprob ${trained}: the k1 estimate of KL(sampler ‖ trainer), in which differences of both signs cancel.`,
    usedBy: [{ who: "tinker-cookbook", as: "optim/kl_sample_train_v1" }],
  },
  "shared/mismatch-half-square": {
    ...shared,
    title: "Mismatch, half mean square",
    unit: "nats",
    better: "lower",
    definition: `Half the mean of (sampler's logprob − trainer's logprob)² ${trained}: the k2 estimate of KL(sampler ‖ trainer).`,
    usedBy: [{ who: "tinker-cookbook", as: "optim/kl_sample_train_v2" }],
  },
} as const satisfies Record<`shared/${string}`, SharedMetricDefinition>;
export type SharedMetricName = keyof typeof sharedMetricDefinitions;
export const sharedMetricNames = Object.keys(sharedMetricDefinitions) as [SharedMetricName, ...SharedMetricName[]];

/** By a name that only these have: other trainers' words for "mismatch". */
export const mismatchNames = [
  "shared/mismatch-logprob",
  "shared/mismatch-prob",
  "shared/mismatch-signed",
  "shared/mismatch-half-square",
] as const satisfies readonly SharedMetricName[];
