/**
 * What a run says. Every field has a documented default (its `describe` text is the form's help and the docs); unknown keys are
 * errors. Names (task sets, backend, dispatcher, loss) are strings that launch checks against the server's catalogue.
 */
import { z } from "zod";
import { callPolicies } from "./ports/task.ts";

/** Text a person may type: no control characters, bounded. */
const label = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, "must not contain control characters or broken surrogates");

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

export const BackendConfig = z.strictObject({
  name: label(100).default("gpu-worker").describe("Backend in the catalogue"),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .nullable()
    .default(null)
    .describe("Address; null = the one this server supervises"),
  server: label(60)
    .nullable()
    .default(null)
    .describe("Name in the operator's list of endpoints, instead of an address; null = none"),
  awayMinutes: z
    .number()
    .positive()
    .max(10_080)
    .nullable()
    .default(null)
    .describe(
      "Minutes without an answer after which the run fails, of a server by address or name; null = 5 before its first answer, 60 later",
    ),
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
});

export const SamplingConfig = z.strictObject({
  temperature: z.number().min(0).max(2).default(1).describe("Softmax temperature while sampling"),
  topP: z.number().gt(0).max(1).default(1).describe("Nucleus mass; 1 = off"),
  topK: z.int().min(-1).max(1_000_000).default(-1).describe("Keep the k likeliest tokens; −1 = off"),
  maxTokensPerTurn: z.int().min(1).max(131_072).default(1024).describe("Sampled tokens in one turn"),
});

export const hintNames = [
  "steps-left",
  "context-nearly-full",
  "malformed-call",
  "failed-edit",
  "repeated-failure",
  "dont-stop-early",
] as const;
export type HintName = (typeof hintNames)[number];

export const McpMount = z.strictObject({
  server: label(60).describe("Name in the operator's list of MCP servers"),
  prefix: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,30}$/)
    .nullable()
    .default(null)
    .describe("Put before its tools' names; null = the server's name"),
  tools: z.array(label(100)).max(100).nullable().default(null).describe("Only these tools; null = all"),
});

export const AgentConfig = z.strictObject({
  dialect: label(50).default("pythonic").describe("How the model writes tool calls"),
  maxTurns: z.int().min(1).max(1000).default(50).describe("Turns per rollout"),
  maxContextTokens: z.int().min(16).max(1_048_576).default(32_768).describe("Prompt plus sampled tokens"),
  parseRetries: z.int().min(0).max(20).default(2).describe("Turns without a usable call before the rollout ends"),
  describeTools: z.boolean().default(true).describe("Put tool descriptions into the prompt"),
  callPolicy: z
    .enum(callPolicies)
    .nullable()
    .default(null)
    .describe("Several calls in one turn: all in order, first only, or refuse; null = the task's own policy"),
  maxCallsPerTurn: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Calls of one turn that are run; the model is told of those left out"),
  onLength: z
    .enum(["end", "tell"])
    .default("end")
    .describe("A turn cut by maxTokensPerTurn ends the rollout, or the model is told that it was cut"),
  lengthRetries: z.int().min(0).max(20).default(2).describe("With onLength tell: cut turns in a row before the end"),
  hints: z
    .array(z.enum(hintNames))
    .max(hintNames.length)
    .nullable()
    .default(null)
    .describe("Hints put into observations, never trained on; null = the task's own"),
  earlyStepThreshold: z
    .int()
    .min(0)
    .max(1000)
    .default(0)
    .describe("Hint dont-stop-early: turns the agent is asked to take at least; 0 = off"),
  mcp: z.array(McpMount).max(16).default([]).describe("MCP servers whose tools every rollout gets"),
  maxOutputBytes: z.int().min(64).max(1_048_576).default(16_384).describe("Tool output shown to the model"),
  maxOutputTokens: z
    .int()
    .min(16)
    .max(1_048_576)
    .nullable()
    .default(null)
    .describe("Tool output shown to the model, tokens; null = no such limit"),
  toolTimeoutMs: z.int().min(1).max(3_600_000).default(60_000).describe("Limit of one tool call, milliseconds"),
  sampling: SamplingConfig.prefault({}),
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

export const AlgorithmConfig = z.strictObject({
  groupsPerStep: z.int().min(1).max(4096).default(16).describe("Task instances per step"),
  groupSize: z.int().min(1).max(256).default(8).describe("Rollouts per instance"),
  advantage: z.enum(["rloo", "grpo", "centred"]).default("rloo").describe("How group rewards become advantages"),
  loss: label(50).default("ppo").describe("Named loss of the backend"),
  clipLow: z.number().min(0).max(1).default(0.2).describe("Ratio clip below 1"),
  clipHigh: z.number().min(0).max(10).default(0.28).describe("Ratio clip above 1"),
  dualClip: z.number().gt(1).max(100).nullable().default(3).describe("Lower bound for negative advantages; null = off"),
  normalisation: z
    .enum(["token-mean", "sequence-mean", "constant"])
    .default("constant")
    .describe("Loss denominator; constant = sequences × normaliserTokens"),
  normaliserTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe("L of the constant normaliser; null = maxContextTokens"),
  learningRate: z.number().positive().max(1).default(1e-6).describe("AdamW learning rate"),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  eps: z.number().positive().default(1e-8),
  weightDecay: z.number().min(0).max(1).default(0),
  gradClipNorm: z.number().min(0).default(1).describe("Global norm clip; 0 = off"),
  trainCut: z
    .boolean()
    .default(false)
    .describe("Also train rollouts that were cut (turn limit, context, length, loop)"),
  groupPolicy: z
    .enum(["shrink", "drop-group", "wait"])
    .default("shrink")
    .describe("What an unscored rollout does to its group"),
  filterZeroVariance: z.boolean().default(true).describe("Skip the forward pass of groups whose rewards are all equal"),
  microBatchTokens: z.int().min(64).max(1_048_576).default(16_384).describe("Tokens per micro-batch"),
});

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
    .describe("Where sandboxes open; null = the operator's choice for the task's kind"),
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

export const CheckpointConfig = z.strictObject({
  every: z.int().min(1).max(100_000).default(10).describe("Steps between checkpoints"),
  keep: z.int().min(1).max(1000).default(3).describe("Newest checkpoints kept"),
});

export const BudgetConfig = z.strictObject({
  steps: z.int().min(1).max(1_000_000).default(100).describe("Optimizer updates"),
  hours: z.number().positive().nullable().default(null).describe("Wall-clock hours; null = no limit"),
  tokens: z.int().positive().nullable().default(null).describe("Sampled tokens; null = no limit"),
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
