/**
 * Published recipes as presets, beside those of presets.ts. Each summary says where it is from and in what it differs from its source;
 * docs/recipes.md has the rest.
 */
import type { Preset } from "./preset.ts";
import type { RunConfigInput } from "./run-config.ts";

/** SkyRL-v0: GRPO with a small KL in the loss, the shell and editor of OpenHands, 25 turns, asked for greedily at the end. */
const skyrlV0 = {
  agent: {
    dialect: "hermes",
    maxTurns: 25,
    maxContextTokens: 32_768,
    sampling: { temperature: 0.5, maxTokensPerTurn: 4_096 },
    toolTimeoutMs: 120_000,
  },
  dispatcher: { name: "pipeline", bounds: { init: 64, run: 96, evaluate: 64 } },
  algorithm: {
    groupSize: 8,
    groupsPerStep: 16,
    advantage: "grpo",
    normalisation: "token-mean",
    learningRate: 1e-6,
    clipLow: 0.2,
    clipHigh: 0.2,
    kl: { coefficient: 1e-3, placement: "loss", estimator: "k3" },
    // Cut rollouts were graded and trained like any other.
    trainCut: true,
  },
  evaluation: { every: 5, samples: 100, temperature: 0 },
  checkpoints: { every: 5, keep: 3 },
} as const satisfies Partial<RunConfigInput>;

/** What the recipes for Qwen3-8B of the SkyRL-Agent paper share here: GRPO over groups of 8. */
const paper8b = {
  agent: { dialect: "hermes" },
  dispatcher: { name: "pipeline", bounds: { init: 256, run: 256, evaluate: 96 } },
  algorithm: { groupSize: 8, advantage: "grpo", normalisation: "token-mean", clipLow: 0.2, clipHigh: 0.28 },
  checkpoints: { every: 5, keep: 3 },
  budget: { steps: 100 },
} as const satisfies Partial<RunConfigInput>;

const openHands = { tools: "bash+editor", agent: "codeact" } as const;

export const recipePresets = {
  "skyrl-v0-7b": {
    title: "SkyRL-v0: 7B on SWE",
    summary:
      "SkyRL-v0 report, OpenHands-7B-Agent: GRPO, 16 instances of 8 rollouts, 80 instances first, then 220. Differs: held-out rollouts have 25 turns like those of training, where the report gives them 50; how many steps each stage took is not published. Needs GPUs, and a folder of rows for each stage.",
    config: {
      name: "SkyRL-v0 7B",
      tags: ["recipe", "swe"],
      seed: 1,
      model: { name: "all-hands/openhands-lm-7b-v0.1" },
      taskSets: [
        { name: "swe", dataset: "swe-first", size: 80, untilStep: 30, options: openHands },
        { name: "swe", dataset: "swe-second", size: 220, fromStep: 31, options: openHands },
      ],
      ...skyrlV0,
      budget: { steps: 60 },
    },
  },
  "skyrl-v0-8b": {
    title: "SkyRL-v0: Qwen3-8B on SWE",
    summary:
      "SkyRL-v0 report, Qwen3-8B without thinking: GRPO, 32 instances of 8 rollouts from 293 instances at temperature 0.6. Differs: held-out rollouts have 25 turns like those of training; the number of steps is not published. Needs GPUs, and a folder of rows.",
    config: {
      name: "SkyRL-v0 8B",
      tags: ["recipe", "swe"],
      seed: 1,
      model: { name: "Qwen/Qwen3-8B", thinking: false },
      taskSets: [{ name: "swe", dataset: "swe", size: 293, options: openHands }],
      ...skyrlV0,
      agent: { ...skyrlV0.agent, sampling: { ...skyrlV0.agent.sampling, temperature: 0.6 } },
      algorithm: { ...skyrlV0.algorithm, groupsPerStep: 32 },
      budget: { steps: 60 },
    },
  },
  "deep-research": {
    title: "Deep research: search and answer",
    summary:
      "SkyRL-Agent paper, Qwen3-8B: GRPO, 64 instances of 8 rollouts, learning rate 5e-6. Differs: documents are searched in a collection of your own instead of the web, without page reader and summariser, and answers are matched instead of judged; the rows (MegaScience, 25/30/30/15 % of those solved 0, 1, 2, 3 times of 4) are yours to choose. Needs GPUs, rows and a corpus.",
    config: {
      name: "deep research",
      tags: ["recipe", "search"],
      seed: 1,
      model: { name: "Qwen/Qwen3-8B" },
      taskSets: [{ name: "search", dataset: "research" }],
      ...paper8b,
      agent: {
        ...paper8b.agent,
        maxTurns: 16,
        maxContextTokens: 32_768,
        sampling: { temperature: 1, maxTokensPerTurn: 4_096 },
      },
      algorithm: { ...paper8b.algorithm, groupsPerStep: 64, learningRate: 5e-6 },
      evaluation: { every: 10, samples: 200 },
    },
  },
  "memory-ruler": {
    title: "Memory: RULER questions",
    summary:
      "SkyRL-Agent paper, Qwen3-8B without thinking: parts of 4k tokens, 32 instances of 8 rollouts, at most 8k tokens a turn. Differs: all weights on a GPU worker instead of LoRA 128 on Tinker; the learning rate of a full fine-tune. Needs GPUs, and rows (RULER-HotpotQA, at most 28k tokens to train, 112k held out).",
    config: {
      name: "memory over RULER",
      tags: ["recipe", "memory"],
      seed: 1,
      model: { name: "Qwen/Qwen3-8B", thinking: false },
      taskSets: [{ name: "memory", dataset: "ruler-hotpotqa", options: { maxChunkTokens: 4_000 } }],
      ...paper8b,
      agent: {
        ...paper8b.agent,
        maxTurns: 64,
        maxContextTokens: 16_384,
        sampling: { temperature: 1, maxTokensPerTurn: 8_192 },
      },
      algorithm: { ...paper8b.algorithm, groupsPerStep: 32, learningRate: 1e-6 },
      evaluation: { every: 10, samples: 128 },
    },
  },
} as const satisfies Record<string, Preset>;
