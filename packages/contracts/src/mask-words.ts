/** Why a token or a whole rollout is not trained, for people. */
import type { MaskReason } from "./endings.ts";

export const maskWords: Readonly<Record<MaskReason, string>> = {
  template: "template: not sampled by the policy",
  observation: "observation: a tool's words",
  hint: "hint: our words",
  "ending-cut": "the rollout was cut",
  "ending-failed": "the rollout failed",
  "no-reward": "no reward to learn from",
  "no-logprob": "no log-prob from the sampler",
  "parse-retry": "its call could not be read",
  stale: "too old a policy version",
  "zero-variance": "all rewards of the group are equal",
  "over-length": "beyond the length that fits",
  "other-row": "trained in another row",
  "turn-cut": "the turn was cut by its token limit",
  "incomplete-sample": "the server's counts and ids disagree",
  "off-policy": "the trainer's probability is too far from the sampler's",
};
