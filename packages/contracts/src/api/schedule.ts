/**
 * Where a run's time goes, and pools across runs: `/api/v1/runs/{id}/schedule`, `/pools`. Bulk is columns of equal length: entry
 * i of each is one thing, so that 4,096 rollouts stay below a megabyte. Milliseconds count from `fromAt`.
 */
import { z } from "zod";
import { endingNames } from "../endings.ts";
import { rolloutStates, runStatuses, stages, stepStates } from "../lifecycle.ts";
import { resources } from "../plan.ts";
import { PredictionReport } from "./predictions.ts";
import { RolloutId, RunId } from "./runs.ts";

/**
 * What a rollout's time is spent on, from the moment it could begin until its step is over. Every millisecond is in one part.
 * Waits are told apart by what was used up at the time, in slices of the shown span.
 */
export const timeParts = {
  initSlot: {
    label: "init slot",
    kind: "wait",
    definition: "Waiting for the init stage while at least 90 % of the run's init slots were in use.",
  },
  sandbox: {
    label: "sandbox",
    kind: "wait",
    definition:
      "Waiting for a stage that takes a sandbox while at least 90 % of the sandbox pool was in use, by any run.",
  },
  runSlot: {
    label: "run slot",
    kind: "wait",
    definition:
      "Waiting to run, or under the policy bounded to begin at all, while at least 90 % of bounds.run was in use.",
  },
  gradeSlot: {
    label: "grading slot",
    kind: "wait",
    definition: "Waiting for the evaluate stage while at least 90 % of the run's grading slots were in use.",
  },
  admission: {
    label: "admission",
    kind: "wait",
    definition:
      "Waiting though slots of this run were free: the policy, the start rate, back-off after a failure, other runs' shares, planner and queue.",
  },
  setUp: {
    label: "set-up",
    kind: "work",
    definition: "In the init stage: opening the sandbox and setting the task up.",
  },
  model: {
    label: "model",
    kind: "work",
    definition: "In calls of the model that are over: sampling, and waiting inside the engine.",
  },
  tools: { label: "tools", kind: "work", definition: "In tool calls that are over." },
  loop: {
    label: "turn loop",
    kind: "work",
    definition:
      "The rest of the run stage: prompts, parsing, writing turns, collecting what is graded, and the calls that are under way.",
  },
  grading: { label: "grading", kind: "work", definition: "In the evaluate stage: the verifier." },
  lost: {
    label: "lost attempts",
    kind: "lost",
    definition: "Stages of attempts that another attempt has replaced: work that nobody uses.",
  },
  siblings: {
    label: "rest of the step",
    kind: "wait",
    definition: "Settled, while other rollouts of the step were not.",
  },
  trainer: {
    label: "trainer",
    kind: "wait",
    definition: "From the last rollout of the step until its update was over: the update and the wait for it.",
  },
} as const satisfies Record<string, { label: string; kind: "wait" | "work" | "lost"; definition: string }>;
export type TimePart = keyof typeof timeParts;
export const timePartNames = Object.keys(timeParts) as [TimePart, ...TimePart[]];

export const ReadSchedule = z.strictObject({
  runId: RunId,
  purpose: z.enum(["train", "evaluate"]).default("train"),
  /** Absent: the newest step. */
  step: z.int().min(0).optional(),
});

/** `model` counts calls of the model under way, which has no size; sandboxes are counted with those of other runs. */
export const useLanes = ["init", "run", "evaluate", "sandbox", "model"] as const;
export type UseLane = (typeof useLanes)[number];

const count = z.array(z.int());
const ms = z.array(z.number());
const maybeMs = z.array(z.number().nullable());
export const Schedule = z.object({
  runId: z.string(),
  purpose: z.enum(["train", "evaluate"]),
  /** Null: there is none yet. */
  step: z.int().nullable(),
  state: z.enum(stepStates).nullable(),
  /** Steps there are, newest first, at most 500. */
  steps: count,
  /** The first of its rollouts could begin; null without a step. */
  fromAt: z.string().nullable(),
  /** The step's end, or now. */
  toMs: z.number(),
  over: z.boolean(),
  gatheredMs: z.number().nullable(),
  updateStartedMs: z.number().nullable(),
  groups: z.array(z.object({ groupId: z.string(), taskSet: z.string(), instanceId: z.string() })),
  rollouts: z.object({
    rolloutId: z.array(z.string()),
    /** Place in `groups`. */
    group: count,
    sample: count,
    attempt: count,
    state: z.array(z.enum(rolloutStates)),
    ending: z.array(z.enum(endingNames).nullable()),
    settledMs: maybeMs,
  }),
  /** One stage of one attempt each, those that were replaced included. */
  spans: z.object({
    /** Place in `rollouts`. */
    rollout: count,
    attempt: count,
    /** Place in init, run, evaluate. */
    stage: count,
    readyMs: ms,
    startedMs: maybeMs,
    endedMs: maybeMs,
  }),
  /** Of the whole run, whatever the step: mean in each slice. */
  use: z.object({
    sliceMs: z.number(),
    lanes: z.array(
      z.object({
        lane: z.enum(useLanes),
        mean: ms,
        /** Of all runs, where they share it. */
        allRuns: ms.nullable(),
        /** Null: unbounded. */
        size: z.int().nullable(),
        /** What bounds it, a setting's name. */
        bound: z.string().nullable(),
      }),
    ),
  }),
  /** Rollouts × milliseconds by what they were spent on. */
  time: z.record(z.enum(timePartNames), z.number()),
  /** Null: none was made (yet), or it is of the run's other purpose. */
  prediction: PredictionReport.nullable(),
});
export type Schedule = z.infer<typeof Schedule>;
export type ScheduleSpans = Schedule["spans"];
export const scheduleStages = stages;

export const PoolRun = z.object({
  runId: z.string(),
  name: z.string(),
  project: z.string(),
  status: z.enum(runStatuses),
  ordinal: z.int(),
  priority: z.int(),
  weight: z.number(),
  /** Leases it holds. */
  held: z.int(),
  /** Rollouts that wait for the stage the resource serves. */
  waiting: z.int(),
  /** Leases it may hold in all; null: not shared out yet. */
  granted: z.int().nullable(),
});
export const PoolInfo = z.object({
  resource: z.enum(resources),
  size: z.int(),
  used: z.int(),
  /** Sandboxes that stay for people: they take room, and no lease holds them. */
  kept: z.int(),
  /** Leases that only evaluation rollouts may take. */
  evaluationReserve: z.int(),
  /** What the runs of a project may hold together, and do. */
  quotas: z.array(z.object({ project: z.string(), quota: z.int(), held: z.int() })),
  /** Runs that hold or want some of it, most held first. */
  runs: z.array(PoolRun),
});
export type PoolInfo = z.infer<typeof PoolInfo>;
export const Pools = z.object({ pools: z.array(PoolInfo) });
export type Pools = z.infer<typeof Pools>;

/** Whether a step, group or rollout is held or over. Ids of steps and groups are made as those of rollouts are. */
export const ReadPart = z.strictObject({ part: z.enum(["step", "group", "rollout"]), id: RolloutId });
export const PartState = z.object({ runId: z.string(), held: z.boolean(), over: z.boolean() });

/**
 * What a rollout waits for. `step`: its step takes no rollouts now. `run`: the run itself does not run. `grant`: nothing of the pool
 * is granted to the run. The slots and `sandbox`: what the run was granted is in use. `bound`: the run's own bound of the stage.
 */
const waitCauses = [
  ...(["run", "step", "held", "draining", "back-off", "model", "bound", "start-rate"] as const),
  ...(["grant", "sandbox", "init-slot", "run-slot", "grade-slot", "gpu"] as const),
] as const;
export type WaitCause = (typeof waitCauses)[number];
/** What the engine that samples bears, in the words of `engineNumbers`, and how many rollouts may sample from it at once. */
export const EngineNow = z.object({
  /** Its server tells what it bears, where it is asked. */
  tells: z.boolean(),
  /** The newest reading; null = there is none. */
  load: z
    .object({
      readAt: z.string(),
      /** Young enough for adaptive concurrency to go by. */
      fresh: z.boolean(),
      running: z.int(),
      waiting: z.int(),
      cacheUse: z.number(),
    })
    .nullable(),
  /** Whether the engine's load moves the limit. */
  adaptive: z.boolean(),
  /** Rollouts that may run at once, and `bounds.run`, which it never exceeds. */
  limit: z.int(),
  bound: z.int(),
  /** When and why the limit was set; null: the bound counts. */
  limitSince: z.string().nullable(),
  limitReason: z.string().nullable(),
});
export type EngineNow = z.infer<typeof EngineNow>;

export const engineNumbers = {
  running: {
    label: "running",
    unit: "requests",
    definition: "Requests that the engine works on, of all runs that sample from it.",
  },
  waiting: {
    label: "waiting",
    unit: "requests",
    definition:
      "Requests that wait inside the engine for room: the fewer of its last two readings, as one that came in a moment ago waits in every engine.",
  },
  cacheUse: {
    label: "cache in use",
    unit: "% of the key-value cache",
    definition:
      "Share of the engine's key-value cache that is in use, of several replicas the fullest one's. Rolldeck's own model server counts rows: sequences in its batch, of those it takes at once.",
  },
  limit: {
    label: "run limit",
    unit: "rollouts",
    definition:
      "Rollouts of this run that may be in the run stage at once. With adaptive concurrency it moves below bounds.run by the engine's load, at most once in 30 s.",
  },
} as const satisfies Record<string, { label: string; unit: string; definition: string }>;

/**
 * Why rollouts wait now, as the planner itself sees it. `fix`: what would let them on, a setting or a command; null where nothing is
 * wrong, or nobody can do anything.
 */
export const WaitingNow = z.object({
  runId: z.string(),
  engine: EngineNow,
  waits: z.array(
    z.object({
      stage: z.enum(stages),
      cause: z.enum(waitCauses),
      count: z.int(),
      /** Since when the oldest of them waits. */
      oldestAt: z.string(),
      detail: z.string(),
      fix: z.string().nullable(),
    }),
  ),
});
export type WaitingNow = z.infer<typeof WaitingNow>;
