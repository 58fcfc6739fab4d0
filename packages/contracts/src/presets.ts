/** Named starting points of the new-run form; each is a RunConfig input, so defaults stay in one place. */
import type { Preset } from "./preset.ts";
import { recipePresets } from "./recipe-presets.ts";
import type { RunConfigInput } from "./run-config.ts";

/** What the presets for the CPU policy share: all rollouts of a step at once, and an optimizer with a long memory. */
const smallPolicy = {
  dispatcher: { name: "pipeline", bounds: { init: 128, run: 128, evaluate: 128 } },
  algorithm: { groupSize: 8, advantage: "rloo", learningRate: 3e-4, beta2: 0.99, clipLow: 0.2, clipHigh: 0.28 },
  evaluation: { samples: 256 },
  checkpoints: { every: 10, keep: 3 },
} as const satisfies Partial<RunConfigInput>;

/** The CPU policy's own format; it knows its tools by training, and their descriptions would not fit. */
const smallAgent = { dialect: "pythonic", describeTools: false } as const satisfies RunConfigInput["agent"];

/** The task that it learns in minutes, whoever trains it. */
const keyChain = {
  seed: 1,
  taskSets: [{ name: "key-chain" }],
  agent: { ...smallAgent, maxTurns: 8, maxContextTokens: 256, sampling: { temperature: 0.7, maxTokensPerTurn: 32 } },
  ...smallPolicy,
  algorithm: { ...smallPolicy.algorithm, groupsPerStep: 16, normaliserTokens: 96 },
} as const satisfies RunConfigInput;

/** Work in a repository by a model of tens of billions of weights. */
const swe = {
  seed: 1,
  model: { name: "Qwen/Qwen3-32B", thinking: true },
  agent: { dialect: "hermes", maxContextTokens: 32_768, toolTimeoutMs: 120_000 },
} as const satisfies Partial<RunConfigInput>;

export const presets = {
  quickstart: {
    title: "Quickstart: key chain on CPU",
    summary:
      "A policy of under a million parameters learns to follow a chain of keys with a tool. A few minutes on one CPU core.",
    config: {
      name: "key chain",
      tags: ["quickstart"],
      ...keyChain,
      model: { name: "quickstart", warmStart: { steps: 150, demosPerStep: 64, learningRate: 2e-3 } },
      budget: { steps: 30 },
    },
  },
  "skyrl-tinker": {
    title: "Key chain on SkyRL's Tinker server",
    summary:
      "The quickstart task with an adapter that SkyRL trains. Needs a server named skyrl in the operator's list that serves a warm-started quickstart folder.",
    config: {
      name: "key chain on SkyRL",
      tags: ["quickstart", "tinker"],
      ...keyChain,
      model: { name: "quickstart" },
      backend: { name: "tinker", dialect: "skyrl", server: "skyrl", lora: { rank: 32 } },
      agent: { ...keyChain.agent, sampling: { ...keyChain.agent.sampling, temperature: 1 } },
      // Adapters bear higher rates than all weights do.
      algorithm: { ...keyChain.algorithm, learningRate: 3e-3, decay: "linear", dualClip: null, gradClipNorm: 0 },
      checkpoints: { every: 1, keep: 3 },
      budget: { steps: 24 },
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
        ...smallAgent,
        maxTurns: 7,
        maxContextTokens: 128,
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
        ...smallAgent,
        maxTurns: 8,
        maxContextTokens: 256,
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
        ...smallAgent,
        maxTurns: 6,
        maxContextTokens: 384,
        sampling: { temperature: 0.7, maxTokensPerTurn: 40 },
      },
      ...smallPolicy,
      algorithm: { ...smallPolicy.algorithm, groupsPerStep: 16, normaliserTokens: 96 },
      budget: { steps: 20 },
    },
  },
  swe: {
    title: "SWE: train on real repositories",
    summary:
      "The recipe of the SkyRL-Agent paper: shell, editor and code search in containers, 64 instances of 8 rollouts a step. Needs GPUs, and a folder of rows: train (R2E-Gym) and evaluate (SWE-bench Verified).",
    config: {
      name: "software engineering",
      tags: ["swe"],
      ...swe,
      taskSets: [{ name: "swe", dataset: "swe", options: { tools: "bash+editor+search", agent: "react" } }],
      agent: { ...swe.agent, maxTurns: 50, sampling: { temperature: 1, maxTokensPerTurn: 4_096 } },
      dispatcher: { name: "pipeline", bounds: { init: 96, run: 96, evaluate: 96 } },
      // What ran into a limit is graded and counts in its group, and is not trained.
      algorithm: {
        groupsPerStep: 64,
        groupSize: 8,
        advantage: "rloo",
        normalisation: "constant",
        learningRate: 1e-6,
        clipLow: 0.2,
        clipHigh: 0.28,
        trainCut: false,
      },
      evaluation: { every: 10, samples: 100, temperature: 0 },
      checkpoints: { every: 5, keep: 3 },
      budget: { steps: 125 },
    },
  },
  "swe-evaluate": {
    title: "SWE: evaluate",
    summary:
      "Shell and editor only, 40k tokens, 100 turns, over the held-out rows of a folder of SWE rows. Runs against any endpoint you name.",
    config: {
      kind: "evaluate",
      name: "software engineering, evaluated",
      tags: ["swe"],
      ...swe,
      taskSets: [{ name: "swe", dataset: "swe", maxTurns: 100, options: { tools: "bash+editor", agent: "codeact" } }],
      agent: {
        ...swe.agent,
        maxTurns: 100,
        maxContextTokens: 40_960,
        sampling: { temperature: 0, maxTokensPerTurn: 4_096 },
      },
      dispatcher: { name: "pipeline", bounds: { init: 32, run: 32, evaluate: 32 } },
      evaluation: { samples: 500 },
    },
  },
  "swe-offline": {
    title: "SWE: evaluate on the offline set",
    summary:
      "Eleven real bugs that `rolldeck task build` makes on this machine, without a registry of images. Needs Docker, and an endpoint named policy in the operator's list.",
    config: {
      kind: "evaluate",
      name: "offline SWE set",
      tags: ["swe", "offline"],
      seed: 1,
      // The endpoint has the policy; this one's tokenizer counts for it, and its tokens are bytes.
      model: { name: "quickstart" },
      backend: { name: "openai-chat", server: "policy" },
      taskSets: [{ name: "swe", dataset: "swe-set", options: { tools: "bash+editor+search", agent: "react" } }],
      agent: {
        dialect: "openai",
        maxTurns: 50,
        maxContextTokens: 400_000,
        sampling: { temperature: 0, maxTokensPerTurn: 16_384 },
        toolTimeoutMs: 120_000,
      },
      dispatcher: { name: "pipeline", bounds: { init: 4, run: 8, evaluate: 4 } },
      evaluation: { samples: 11 },
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
        ...smallAgent,
        maxTurns: 4,
        maxContextTokens: 256,
        sampling: { temperature: 1, maxTokensPerTurn: 16 },
      },
      algorithm: { groupsPerStep: 4, groupSize: 4, normaliserTokens: 96, learningRate: 3e-4 },
      budget: { steps: 2 },
    },
  },
  ...recipePresets,
} as const satisfies Record<string, Preset>;
export type PresetName = keyof typeof presets;
