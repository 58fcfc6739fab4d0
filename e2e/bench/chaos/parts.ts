/** The parts of the chaos benchmark: a policy, a queue, a model server, its share of all rollouts and its kills. */
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";

export interface Part {
  readonly queue: "postgres" | "redis";
  readonly gpu: "scripted" | "real";
  /** Of all rollouts. */
  readonly share: number;
  readonly kills: number;
  readonly config: RunConfigInput;
}

const common = {
  kind: "train",
  name: "chaos",
  model: { name: "quickstart" },
  algorithm: { groupsPerStep: 12, groupSize: 4, filterZeroVariance: false },
  evaluation: { samples: 0 },
  checkpoints: { every: 4, keep: 3 },
  budget: { steps: 100_000 },
} as const satisfies Omit<RunConfigInput, "taskSets">;
const bounds = { init: 16, run: 32, evaluate: 16 };
const pipeline = { name: "pipeline", bounds };
const async = { name: "async", maxStaleness: 2, bounds };

/** In sandboxes: what they may leak is seen here. */
const boxed = {
  ...common,
  taskSets: [{ name: "boxed" }],
  agent: { maxTurns: 10, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
} satisfies RunConfigInput;
/** Without, and so many more in the same time. */
const plain = {
  ...common,
  taskSets: [{ name: "key-chain", maxTurns: 10 }],
  agent: { maxTurns: 10, maxContextTokens: 1_024, describeTools: false, sampling: { maxTokensPerTurn: 32 } },
} satisfies RunConfigInput;
/** An untrained policy on the real trainer: its rollouts are short, its updates are real. */
const real: RunConfigInput = {
  ...presets.smoke.config,
  tags: [],
  name: "chaos",
  dispatcher: pipeline,
  algorithm: { ...presets.smoke.config.algorithm, trainCut: true, filterZeroVariance: false },
  checkpoints: { every: 2, keep: 3 },
  budget: { steps: 100_000 },
};

export const parts = {
  "pipeline-redis": {
    queue: "redis",
    gpu: "scripted",
    share: 0.15,
    kills: 13,
    config: { ...boxed, dispatcher: pipeline },
  },
  "async-postgres": {
    queue: "postgres",
    gpu: "scripted",
    share: 0.15,
    kills: 13,
    config: { ...boxed, dispatcher: async },
  },
  "pipeline-postgres": {
    queue: "postgres",
    gpu: "scripted",
    share: 0.32,
    kills: 12,
    config: { ...plain, dispatcher: pipeline },
  },
  "async-redis": { queue: "redis", gpu: "scripted", share: 0.32, kills: 12, config: { ...plain, dispatcher: async } },
  "real-redis": { queue: "redis", gpu: "real", share: 0.06, kills: 6, config: real },
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof parts;
export const partNames = [
  "pipeline-redis",
  "async-postgres",
  "pipeline-postgres",
  "async-redis",
  "real-redis",
] as const satisfies readonly PartName[];
