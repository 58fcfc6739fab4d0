/** Run screens and `/api/v1/runs`: inputs and outputs shared by tRPC, REST, SDK, CLI and pages. Times are RFC 3339 UTC. */
import { z } from "zod";
import { endingNames } from "../endings.ts";
import { BootPhase, RunEvent } from "../events.ts";
import { rolloutOutcomes, rolloutStates, runStatuses, stages, stepStates } from "../lifecycle.ts";
import { AnyMetricName, metricNames } from "../metrics.ts";
import { setAsideReasons } from "../plan.ts";
import { DispatcherChange, RunConfig } from "../run-config.ts";

export const RunId = z.string().regex(/^[0-9a-z]{8,40}$/, "a run id is 8 to 40 lower-case letters and digits");
export const RolloutId = z.string().regex(/^[0-9a-z]{8,40}$/, "a rollout id is 8 to 40 lower-case letters and digits");

export const runSorts = ["createdAt", "name", "reward"] as const;
export const ListRuns = z.strictObject({
  /** Words match name, id and tags; `status:running`, `tag:x`, `project:p`, `-tag:x` narrow. */
  query: z.string().max(500).default(""),
  sort: z.enum(runSorts).default("createdAt"),
  descending: z.boolean().default(true),
  limit: z.int().min(1).max(200).default(50),
  cursor: z.string().max(200).nullish(),
});

export const RunSummary = z.object({
  runId: z.string(),
  name: z.string(),
  project: z.string(),
  tags: z.array(z.string()),
  kind: z.enum(["train", "evaluate"]),
  status: z.enum(runStatuses),
  /** Why it is in this status, in a sentence; null when plain. */
  reason: z.string().nullable(),
  model: z.string(),
  backend: z.string(),
  taskSets: z.array(z.string()),
  /** Updates done and wanted. */
  step: z.int(),
  steps: z.int(),
  /** Last values; null before the first step. */
  reward: z.number().nullable(),
  success: z.number().nullable(),
  logprobGap: z.number().nullable(),
  /** reward/mean by step, at most 60 points, for the sparkline. */
  rewardSeries: z.array(z.number().nullable()),
  /** Decimal text: may pass 2^53. */
  sampledTokens: z.string(),
  createdAt: z.string(),
  startedAt: z.string().nullable(),
  endedAt: z.string().nullable(),
  /** Newest event of the run. */
  lastEventAt: z.string().nullable(),
  /** Runs made before it. Runs are never deleted, so it stays; a run's colour follows from it. */
  ordinal: z.int(),
});
export type RunSummary = z.infer<typeof RunSummary>;
export const RunPage = z.object({ items: z.array(RunSummary), nextCursor: z.string().nullable(), total: z.int() });

export const RunDetail = RunSummary.extend({
  config: RunConfig,
  seed: z.int(),
  /** Newest seq; subscribe with `after: head`. */
  head: z.int(),
  statusSince: z.string(),
  boot: z
    .object({
      phase: BootPhase,
      message: z.string(),
      done: z.number().nullable(),
      total: z.number().nullable(),
      unit: z.string().nullable(),
      elapsedMs: z.number(),
    })
    .nullable(),
  /** A model server that someone else runs and that does not answer: what the run waits for now; null = for none. */
  waitingFor: z
    .object({
      address: z.string(),
      reason: z.string(),
      since: z.string(),
      tries: z.int(),
      /** After which the run fails. */
      limitMinutes: z.number(),
    })
    .nullable(),
  /** The newest step of which no rollout could have its sandbox, and why; null = there is none among the last. */
  sandboxRefusal: z
    .object({
      step: z.int(),
      purpose: z.enum(["train", "evaluate"]),
      rollouts: z.int(),
      reason: z.string(),
      /** Rollouts with that reason. */
      alike: z.int(),
    })
    .nullable(),
  /** In the currency of this server's prices, when its newest step ended; null: nothing is known. */
  cost: z
    .object({
      step: z.int(),
      /** Of the parts that have a price; a part that was used and has none is null. */
      total: z.number(),
      gpu: z.number().nullable(),
      sandbox: z.number().nullable(),
      judge: z.number().nullable(),
      hosted: z.number().nullable(),
      perTrainedGroup: z.number().nullable(),
      /** Prices that are missing for what was used, also of a part that has others: above 0, the total is a lower bound. */
      unpriced: z.int(),
    })
    .nullable(),
  /** What the run's preflight says of it; null: it is none, or not over. */
  preflight: z
    .object({
      ok: z.boolean(),
      steps: z.int(),
      /** Mean rewards of the first and of the last quarter of the steps. */
      first: z.number(),
      last: z.number(),
      /** Reward per step. */
      slope: z.number(),
      /** slope ÷ its standard error; null: there is no noise to hold it against. */
      t: z.number().nullable(),
      text: z.string(),
    })
    .nullable(),
  servingVersion: z.int().nullable(),
  /** What was changed of the config's dispatcher since launch; null = nothing. */
  dispatch: DispatcherChange.nullable(),
  /** What is begun comes to its end, nothing new is started, and then the run pauses. */
  draining: z.boolean(),
  /** Rollouts that may run at once, as adaptive concurrency set it; null = the bound. */
  runLimit: z.int().nullable(),
  counts: z.object({
    /** Rollouts of open steps by stage and state. */
    byStage: z.array(z.object({ stage: z.enum(stages), state: z.enum(rolloutStates), count: z.int() })),
    settled: z.int(),
    trainedRollouts: z.int(),
  }),
  openSteps: z.array(
    z.object({
      stepId: z.string(),
      step: z.int(),
      purpose: z.enum(["train", "evaluate"]),
      state: z.enum(stepStates),
      settled: z.int(),
      rollouts: z.int(),
    }),
  ),
  checkpoints: z.array(
    z.object({ version: z.int(), name: z.string(), bytes: z.number().nullable(), createdAt: z.string() }),
  ),
  /** Mean seconds per finished step and seconds left at that pace; null when unknown. */
  secondsPerStep: z.number().nullable(),
  etaSeconds: z.number().nullable(),
});
export type RunDetail = z.infer<typeof RunDetail>;

export const LaunchRun = z.strictObject({ config: z.unknown() });
export const Launched = z.object({ runId: z.string() });
export const CheckConfig = z.strictObject({
  /** An object, or YAML/JSON text. */
  config: z.unknown(),
});
export const ConfigIssue = z.object({
  /** `taskSets[0].weight` */
  path: z.string(),
  message: z.string(),
  /** Nearest valid name, or what to change. */
  fix: z.string().nullable(),
});
export const ConfigCheck = z.object({
  ok: z.boolean(),
  /** With every default filled in; null when not ok. */
  config: RunConfig.nullable(),
  issues: z.array(ConfigIssue),
  warnings: z.array(ConfigIssue),
  estimate: z.object({ rollouts: z.int(), maxSampledTokens: z.string(), basis: z.string() }).nullable(),
});
export type ConfigCheck = z.infer<typeof ConfigCheck>;

export const RunRef = z.strictObject({ runId: RunId });
export const RunActions = ["pause", "drain", "resume", "stop"] as const;
export const ActOnRun = z.strictObject({
  runId: RunId,
  action: z.enum(RunActions),
  reason: z.string().max(500).nullish(),
});
export const RunStatusReply = z.object({ runId: z.string(), status: z.enum(runStatuses) });

export const ReadEvents = z.strictObject({
  runId: RunId,
  after: z.int().min(0).default(0),
  limit: z.int().min(1).max(1000).default(500),
  /** Long poll: wait up to this long for an event after `after`, milliseconds. */
  waitMs: z.int().min(0).max(30_000).default(0),
});
export const EventPage = z.object({ events: z.array(RunEvent), head: z.int() });

export const ReadMetrics = z.strictObject({
  runId: RunId,
  names: z.array(AnyMetricName).min(1).max(50),
  fromStep: z.int().min(0).optional(),
  toStep: z.int().min(0).optional(),
  maxPoints: z.int().min(2).max(600).default(600),
});
/** `min`/`max` equal `value` unless points were bucketed; `nonFinite` marks NaN and infinities, kept apart. */
export const MetricPoint = z.object({
  step: z.int(),
  value: z.number().nullable(),
  min: z.number().nullable(),
  max: z.number().nullable(),
  count: z.int(),
  nonFinite: z.enum(["NaN", "Infinity", "-Infinity"]).nullable(),
  at: z.string(),
});
export const MetricSeries = z.object({ name: AnyMetricName, bucketSteps: z.int(), points: z.array(MetricPoint) });
export type MetricSeries = z.infer<typeof MetricSeries>;
export const MetricsReply = z.object({ runId: z.string(), series: z.array(MetricSeries) });

/** The rollout matrix: groups of one step × samples. */
export const ReadMatrix = z.strictObject({
  runId: RunId,
  purpose: z.enum(["train", "evaluate"]).default("train"),
  /** Absent: the newest step. */
  step: z.int().min(0).optional(),
});
export const MatrixCell = z.object({
  rolloutId: z.string(),
  sample: z.int(),
  attempt: z.int(),
  stage: z.enum(stages),
  state: z.enum(rolloutStates),
  outcome: z.enum(rolloutOutcomes).nullable(),
  ending: z.enum(endingNames).nullable(),
  reward: z.number().nullable(),
  success: z.boolean().nullable(),
  turns: z.int(),
  /** Of the verifier, for people. */
  flags: z.array(z.string()),
});
export const Matrix = z.object({
  runId: z.string(),
  purpose: z.enum(["train", "evaluate"]),
  step: z.int().nullable(),
  state: z.enum(stepStates).nullable(),
  /** Steps there are, newest first, at most 500. */
  steps: z.array(z.int()),
  groups: z.array(
    z.object({
      groupId: z.string(),
      taskSet: z.string(),
      instanceId: z.string(),
      /** Why it does not count towards its step; null = it does. */
      setAside: z.enum(setAsideReasons).nullable(),
      /** A person holds it. */
      held: z.boolean(),
      mean: z.number().nullable(),
      cells: z.array(MatrixCell),
    }),
  ),
});
export type Matrix = z.infer<typeof Matrix>;

/** Stage timeline: time slices with how many rollouts were where. */
export const ReadTimeline = z.strictObject({
  runId: RunId,
  seconds: z.int().min(10).max(86_400).default(600),
  slices: z.int().min(10).max(600).default(120),
});
export const Timeline = z.object({
  runId: z.string(),
  fromAt: z.string(),
  toAt: z.string(),
  sliceMs: z.number(),
  /** Mean count in each slice; `queued` = waiting for a slot or for a worker. */
  lanes: z.array(
    z.object({ stage: z.enum([...stages, "update"]), active: z.array(z.number()), queued: z.array(z.number()) }),
  ),
  marks: z.array(
    z.object({ at: z.string(), kind: z.enum(["version", "checkpoint", "adopted", "status"]), label: z.string() }),
  ),
});
export type Timeline = z.infer<typeof Timeline>;

export const CompareRuns = z.strictObject({
  runIds: z.array(RunId).min(1).max(50),
  names: z.array(z.enum(metricNames)).min(1).max(20),
});
export const Comparison = z.object({
  runs: z.array(RunSummary),
  /** Flattened dot paths that differ; values as JSON text, null = absent. */
  configDifferences: z.array(z.object({ path: z.string(), values: z.array(z.string().nullable()) })),
  metrics: z.array(
    z.object({
      name: z.enum(metricNames),
      series: z.array(z.object({ runId: z.string(), points: z.array(MetricPoint) })),
      verdict: z.array(z.object({ runId: z.string(), final: z.number().nullable(), best: z.number().nullable() })),
    }),
  ),
  warnings: z.array(z.string()),
});
export type Comparison = z.infer<typeof Comparison>;
