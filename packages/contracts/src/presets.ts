/** Named starting points of the new-run form; each is a RunConfig input, so defaults stay in one place. */
import type { RunConfigInput } from "./run-config.ts";

export interface Preset {
  readonly title: string;
  readonly summary: string;
  readonly config: RunConfigInput;
}

/** What the presets for the CPU policy share: all rollouts of a step at once, and an optimizer with a long memory. */
const smallPolicy = {
  dispatcher: { name: "pipeline", bounds: { init: 128, run: 128, evaluate: 128 } },
  algorithm: { groupSize: 8, advantage: "rloo", learningRate: 3e-4, beta2: 0.99, clipLow: 0.2, clipHigh: 0.28 },
  evaluation: { samples: 256 },
  checkpoints: { every: 10, keep: 3 },
} as const satisfies Partial<RunConfigInput>;

export const presets = {
  quickstart: {
    title: "Quickstart: key chain on CPU",
    summary:
      "A policy of under a million parameters learns to follow a chain of keys with a tool. A few minutes on one CPU core.",
    config: {
      name: "key chain",
      tags: ["quickstart"],
      seed: 1,
      model: { name: "quickstart", warmStart: { steps: 150, demosPerStep: 64, learningRate: 2e-3 } },
      taskSets: [{ name: "key-chain" }],
      agent: {
        dialect: "pythonic",
        maxTurns: 8,
        maxContextTokens: 256,
        describeTools: false,
        sampling: { temperature: 0.7, maxTokensPerTurn: 32 },
      },
      ...smallPolicy,
      algorithm: { ...smallPolicy.algorithm, groupsPerStep: 16, normaliserTokens: 96 },
      budget: { steps: 30 },
    },
  },
  memory: {
    title: "Memory: read in parts on CPU",
    summary:
      "The quickstart policy learns to carry one digit through a text that it reads part by part, in a memory that it rewrites.",
    config: {
      name: "memory over parts",
      tags: ["memory"],
      seed: 1,
      model: { name: "quickstart", warmStart: { steps: 250, demosPerStep: 32, learningRate: 2e-3 } },
      taskSets: [{ name: "memory-small" }],
      agent: {
        dialect: "pythonic",
        maxTurns: 7,
        maxContextTokens: 128,
        describeTools: false,
        sampling: { temperature: 0.7, maxTokensPerTurn: 48 },
      },
      ...smallPolicy,
      algorithm: { ...smallPolicy.algorithm, groupsPerStep: 12, normaliserTokens: 160 },
      budget: { steps: 20 },
    },
  },
  mixed: {
    title: "Mixed: two tasks on CPU",
    summary:
      "One policy learns the key chain and the memory task in the same steps; every number is kept for each of them.",
    config: {
      name: "key chain and memory",
      tags: ["mixed"],
      seed: 1,
      model: { name: "quickstart", warmStart: { steps: 300, demosPerStep: 64, learningRate: 2e-3 } },
      taskSets: [{ name: "key-chain" }, { name: "memory-small" }],
      agent: {
        dialect: "pythonic",
        maxTurns: 8,
        maxContextTokens: 256,
        describeTools: false,
        sampling: { temperature: 0.7, maxTokensPerTurn: 48 },
      },
      ...smallPolicy,
      algorithm: { ...smallPolicy.algorithm, groupsPerStep: 16, normaliserTokens: 128 },
      budget: { steps: 20 },
    },
  },
  search: {
    title: "Search: two hops on CPU",
    summary:
      "The quickstart policy learns to search twice in 200 documents: what the first search finds is what the second looks for.",
    config: {
      name: "two-hop search",
      tags: ["search"],
      seed: 1,
      model: { name: "quickstart", warmStart: { steps: 225, demosPerStep: 48, learningRate: 3e-3 } },
      taskSets: [{ name: "search-small" }],
      agent: {
        dialect: "pythonic",
        maxTurns: 6,
        maxContextTokens: 384,
        describeTools: false,
        sampling: { temperature: 0.7, maxTokensPerTurn: 40 },
      },
      ...smallPolicy,
      algorithm: { ...smallPolicy.algorithm, groupsPerStep: 16, normaliserTokens: 96 },
      budget: { steps: 20 },
    },
  },
  smoke: {
    title: "Smoke: two small steps",
    summary:
      "The quickstart policy without its warm start, two steps of four groups: checks the machinery, learns nothing.",
    config: {
      name: "smoke",
      tags: ["smoke"],
      seed: 1,
      model: { name: "quickstart", warmStart: null },
      taskSets: [{ name: "key-chain" }],
      agent: {
        dialect: "pythonic",
        maxTurns: 4,
        maxContextTokens: 256,
        describeTools: false,
        sampling: { temperature: 1, maxTokensPerTurn: 16 },
      },
      algorithm: { groupsPerStep: 4, groupSize: 4, normaliserTokens: 96, learningRate: 3e-4 },
      budget: { steps: 2 },
    },
  },
} as const satisfies Record<string, Preset>;
export type PresetName = keyof typeof presets;
