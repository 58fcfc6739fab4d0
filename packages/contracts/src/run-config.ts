/**
 * What a run says. Every field has a documented default (its `describe` text is the form's help and the docs); unknown keys are
 * errors. Names (task sets, backend, dispatcher, loss) are strings that launch checks against the server's catalogue.
 */
import { z } from "zod";
import { AgentConfig } from "./agent-config.ts";
import { AlgorithmConfig } from "./algorithm-config.ts";
import { BackendConfig } from "./backend-config.ts";
import { label } from "./label.ts";
import type { MetricName } from "./metrics.ts";

export const sandboxRuntimes = ["docker", "process", "remote", "kubernetes"] as const;
export type SandboxRuntimeName = (typeof sandboxRuntimes)[number];
/** Those whose sandboxes can be reset from one rollout to the next. */
export const resettingRuntimes: readonly SandboxRuntimeName[] = ["docker", "process", "remote"];

export const Bounds = z.strictObject({
  init: z.int().min(1).max(4096).default(64).describe("Rollouts in the init stage at once"),
  run: z.int().min(1).max(4096).default(64).describe("Rollouts in the run stage at once"),
  evaluate: z.int().min(1).max(4096).default(32).describe("Rollouts in the evaluate stage at once"),
});
export type Bounds = z.infer<typeof Bounds>;

export const ModelConfig = z.strictObject({
  name: label(200).default("quickstart").describe("Folder under a model root, or a name the backend knows"),
  warmStart: z
    .strictObject({
      steps: z.int().min(0).max(10_000).default(90).describe("Supervised steps on demonstrations; cached by content"),
      demosPerStep: z.int().min(1).max(1024).default(64).describe("Demonstrations per supervised step"),
      learningRate: z.number().positive().max(1).default(2e-3).describe("AdamW learning rate of the warm start"),
    })
    .nullable()
    .default(null)
    .describe("Supervised demonstrations before reinforcement learning; null = none"),
  startFrom: z
    .strictObject({
      run: label(40).describe("Id of the run whose checkpoint it is"),
      version: z.int().min(0).nullable().default(null).describe("Policy version; null = its newest checkpoint"),
    })
    .nullable()
    .default(null)
    .describe("Begin with another run's weights, to measure them or to train on; null = the model's own"),
  chatTemplate: label(100)
    .nullable()
    .default(null)
    .describe("Named chat template of this server; null = the model folder's own"),
  thinking: z
    .boolean()
    .nullable()
    .default(null)
    .describe("Tell the chat template to switch thinking on or off; null = the template's own default"),
});

export const TaskSetConfig = z.strictObject({
  name: label(100).describe("Task in the catalogue"),
  weight: z.number().positive().max(1e6).default(1).describe("Share of instances when several sets are trained"),
  maxTurns: z
    .int()
    .min(1)
    .max(1000)
    .nullable()
    .default(null)
    .describe("Turns per rollout; null = the task's own limit"),
  dataset: z
    .string()
    .max(300)
    .regex(/^(?!\/)(?!.*(?:^|\/)\.\.?(?:\/|$))[^\p{Cc}\p{Cs}]+$/u, "must be a relative path without . or ..")
    .nullable()
    .default(null)
    .describe("File under the server's data roots; null = the task's own instances"),
  options: z.record(label(60), z.json()).default({}).describe("The task's own settings, such as lengths"),
  size: z.int().min(1).max(10_000_000).nullable().default(null).describe("Use only the first n instances; null = all"),
  fromStep: z.int().min(1).max(1_000_000).default(1).describe("First step that trains this set"),
  untilStep: z
    .int()
    .min(1)
    .max(1_000_000)
    .nullable()
    .default(null)
    .describe("Last step that trains this set; null = to the end"),
});

export const DispatcherConfig = z.strictObject({
  name: label(50).default("pipeline").describe("Admission policy"),
  bounds: Bounds.prefault({}),
  stageTimeoutMs: z
    .strictObject({
      init: z.int().min(1).default(600_000),
      run: z.int().min(1).default(3_600_000),
      evaluate: z.int().min(1).default(1_800_000),
    })
    .prefault({})
    .describe("Deadline of one stage of one attempt, milliseconds"),
  weight: z.number().min(0.1).max(100).default(1).describe("Share of a pool among runs of the same priority"),
  priority: z
    .int()
    .min(0)
    .max(9)
    .default(0)
    .describe("Runs of a higher priority are served first; a lower one keeps at least one place of each pool"),
  startsPerSecond: z
    .number()
    .min(0.02)
    .max(1000)
    .nullable()
    .default(null)
    .describe("Rollouts that may enter the init stage per second; null = no limit"),
  maxStaleness: z
    .int()
    .min(0)
    .max(64)
    .default(1)
    .describe("`async`: versions a group's oldest turn may lie behind the learner; 0 = synchronous"),
  overSample: z
    .strictObject({
      groups: z.int().min(0).max(4096).default(0).describe("Groups started per step beyond groupsPerStep"),
      rollouts: z.int().min(0).max(255).default(0).describe("Rollouts started per group beyond groupSize"),
    })
    .prefault({})
    .describe("Start more than a step needs; the first to be scored are trained, the rest is cut"),
  zeroVariance: z
    .strictObject({
      mode: z
        .enum(["keep", "filter", "replace"])
        .default("keep")
        .describe("Groups whose rewards are all equal: keep them, set them aside, or sample another instance instead"),
      maxReplaced: z.int().min(1).max(4096).default(64).describe("Groups replaced per step at most"),
    })
    .prefault({}),
  adaptive: z
    .boolean()
    .default(false)
    .describe("Let the engine's cache use and queue set how many rollouts run, up to bounds.run"),
  restartTail: z
    .number()
    .min(1.5)
    .max(100)
    .nullable()
    .default(null)
    .describe("Restart a rollout that runs this many times longer than expected; once, null = never"),
});
export type DispatcherConfig = z.infer<typeof DispatcherConfig>;

/** What may be changed of a run's dispatcher while it runs; absent = as it is. */
export const DispatcherChange = z.strictObject({
  bounds: Bounds.optional(),
  weight: DispatcherConfig.shape.weight.unwrap().optional(),
  priority: DispatcherConfig.shape.priority.unwrap().optional(),
  startsPerSecond: DispatcherConfig.shape.startsPerSecond.unwrap().optional(),
  adaptive: DispatcherConfig.shape.adaptive.unwrap().optional(),
});
export type DispatcherChange = z.infer<typeof DispatcherChange>;

export const EvaluationConfig = z.strictObject({
  every: z
    .int()
    .min(0)
    .max(100_000)
    .default(0)
    .describe("Steps between evaluations; 0 = only start and end when samples > 0"),
  samples: z.int().min(0).max(10_000).default(0).describe("Held-out instances per evaluation; 0 = none"),
  temperature: z.number().min(0).max(2).nullable().default(null).describe("null = the training temperature"),
  samplesPerInstance: z.int().min(1).max(256).default(1).describe("Rollouts of each held-out instance, n of pass@k"),
  passAt: z
    .array(z.int().min(1).max(256))
    .min(1)
    .max(8)
    .default([1])
    .describe("k values of pass@k; each at most samplesPerInstance"),
  baseline: label(40)
    .nullable()
    .default(null)
    .describe("Id of a run whose evaluation this one is compared with, by paired bootstrap; null = none"),
});

export const SandboxConfig = z.strictObject({
  runtime: z
    .enum(sandboxRuntimes)
    .nullable()
    .default(null)
    .describe("Where sandboxes open; null = the operator's choice"),
  cpus: z.number().positive().max(512).nullable().default(null).describe("Cores of one sandbox; null = the task's own"),
  memoryMb: z
    .int()
    .min(16)
    .max(1_048_576)
    .nullable()
    .default(null)
    .describe("Memory of one, MiB; null = the task's own"),
  pids: z.int().min(8).max(100_000).nullable().default(null).describe("Processes of one; null = the task's own"),
  diskMb: z.int().min(16).max(10_485_760).nullable().default(null).describe("Disk of one, MiB; null = the task's own"),
  keep: z
    .enum(["never", "failed", "always"])
    .default("never")
    .describe("Agents' sandboxes kept after grading, to look into: of rollouts without success, or all"),
  keepMinutes: z.int().min(1).max(1440).default(30).describe("How long one is kept"),
});

/** What tells one version of a policy from another. */
export const checkpointMetrics = [
  "evaluate/success",
  "evaluate/reward",
  "reward/mean",
  "reward/success",
] as const satisfies readonly MetricName[];

export const CheckpointConfig = z.strictObject({
  every: z.int().min(1).max(100_000).default(10).describe("Steps between checkpoints"),
  keep: z.int().min(1).max(1000).default(3).describe("Newest checkpoints kept"),
  keepBest: z
    .strictObject({
      count: z
        .int()
        .min(1)
        .max(1000)
        .default(1)
        .describe("Best checkpoints kept, whether or not they are among the newest"),
      metric: z.enum(checkpointMetrics).default("evaluate/success").describe("What the best are chosen by"),
      better: z.enum(["higher", "lower"]).default("higher").describe("Which values of it are better"),
    })
    .nullable()
    .default(null)
    .describe("Keep the best by a metric beside the newest, of equal ones the newer; null = the newest only"),
});
export type CheckpointConfig = z.infer<typeof CheckpointConfig>;

export const BudgetConfig = z.strictObject({
  steps: z.int().min(1).max(1_000_000).default(100).describe("Optimizer updates"),
  hours: z.number().positive().nullable().default(null).describe("Wall-clock hours; null = no limit"),
  tokens: z.int().positive().nullable().default(null).describe("Sampled tokens; null = no limit"),
  cost: z
    .number()
    .positive()
    .max(1e12)
    .nullable()
    .default(null)
    .describe("Cost at this server's prices, looked at when a step ends; null = no limit"),
});

export const RunConfig = z.strictObject({
  version: z.literal(1).default(1),
  kind: z.enum(["train", "evaluate"]).default("train").describe("What the run does"),
  name: label(200).default("untitled").describe("Shown in lists; need not be unique"),
  project: label(100).default("default"),
  tags: z.array(label(50)).max(20).default([]),
  seed: z.int().min(0).max(2_147_483_647).default(0).describe("Seeds instances and sampling"),
  stepSource: z
    .enum(["planned", "driven"])
    .default("planned")
    .describe("planned: Rolldeck updates the weights; driven: an outside trainer asks for batches"),
  preflight: z
    .enum(["none", "overfit"])
    .default("none")
    .describe("overfit: train the first step's instances in every step, and say whether their reward rises"),
  model: ModelConfig.prefault({}),
  backend: BackendConfig.prefault({}),
  taskSets: z.array(TaskSetConfig).min(1).max(32),
  agent: AgentConfig.prefault({}),
  sandbox: SandboxConfig.prefault({}),
  dispatcher: DispatcherConfig.prefault({}),
  algorithm: AlgorithmConfig.prefault({}),
  evaluation: EvaluationConfig.prefault({}),
  checkpoints: CheckpointConfig.prefault({}),
  budget: BudgetConfig.prefault({}),
});
export type RunConfig = z.infer<typeof RunConfig>;
export type RunConfigInput = z.input<typeof RunConfig>;
