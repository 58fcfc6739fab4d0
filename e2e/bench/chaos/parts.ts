/** The parts of the chaos benchmark: a policy, a queue, a model server, and the share of all rollouts and kills. */
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";

export interface Part {
  readonly queue: "postgres" | "redis";
  readonly gpu: "scripted" | "real";
  readonly share: number;
  readonly config: RunConfigInput;
}

const boxed = {
  kind: "train",
  model: { name: "quickstart" },
  taskSets: [{ name: "boxed" }],
  agent: { maxTurns: 10, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
  algorithm: { groupsPerStep: 12, groupSize: 4, filterZeroVariance: false },
  evaluation: { samples: 0 },
  checkpoints: { every: 4, keep: 3 },
  budget: { steps: 100_000 },
} as const satisfies RunConfigInput;
const bounds = { init: 16, run: 32, evaluate: 16 };

const pipeline: RunConfigInput = { ...boxed, name: "chaos", dispatcher: { name: "pipeline", bounds } };
const async: RunConfigInput = { ...boxed, name: "chaos", dispatcher: { name: "async", maxStaleness: 2, bounds } };
/** An untrained policy on the real trainer: its rollouts are short, its updates are real. */
const real: RunConfigInput = {
  ...presets.smoke.config,
  tags: [],
  name: "chaos",
  dispatcher: { name: "pipeline", bounds },
  algorithm: { ...presets.smoke.config.algorithm, trainCut: true, filterZeroVariance: false },
  checkpoints: { every: 2, keep: 3 },
  budget: { steps: 100_000 },
};

export const parts = {
  "pipeline-redis": { queue: "redis", gpu: "scripted", share: 0.24, config: pipeline },
  "async-postgres": { queue: "postgres", gpu: "scripted", share: 0.24, config: async },
  "pipeline-postgres": { queue: "postgres", gpu: "scripted", share: 0.22, config: pipeline },
  "async-redis": { queue: "redis", gpu: "scripted", share: 0.22, config: async },
  "real-redis": { queue: "redis", gpu: "real", share: 0.08, config: real },
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof parts;
export const partNames = [
  "pipeline-redis",
  "async-postgres",
  "pipeline-postgres",
  "async-redis",
  "real-redis",
] as const satisfies readonly PartName[];
