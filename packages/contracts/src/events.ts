/**
 * The event log: one append-only list per run with a gapless `seq` from 1. Bodies hold ids and facts, at most 2 KB, never
 * tokens or model text. One type per event, discriminated by `type`; names are noun-verb.
 */
import { z } from "zod";
import { endingNames } from "./endings.ts";
import { rolloutOutcomes, rolloutStates, runStatuses, stages, stepStates } from "./lifecycle.ts";
import { setAsideReasons } from "./plan.ts";
import { DispatcherChange } from "./run-config.ts";
import { trainerJobStates } from "./trainer-jobs.ts";

const ref = { rolloutId: z.string(), attempt: z.int() };
export const bootPhases = [
  "waiting-for-worker",
  "environment",
  "model-server",
  "create-model",
  "warm-start",
  "first-version",
  "ready",
] as const;
export const BootPhase = z.enum(bootPhases);
export type BootPhase = z.infer<typeof BootPhase>;

export const sandboxPurposes = ["agent", "grade"] as const;
export type SandboxPurpose = (typeof sandboxPurposes)[number];

export const EventBody = z.discriminatedUnion("type", [
  z.object({ type: z.literal("run-created"), name: z.string(), kind: z.string() }),
  z.object({
    type: z.literal("run-status"),
    from: z.enum(runStatuses),
    to: z.enum(runStatuses),
    reason: z.string().nullable(),
  }),
  /** Progress of a boot phase; `done`/`total` in `unit`. */
  z.object({
    type: z.literal("boot-progress"),
    phase: BootPhase,
    message: z.string().max(500),
    done: z.number().nullable(),
    total: z.number().nullable(),
    unit: z.string().nullable(),
    elapsedMs: z.number(),
  }),
  z.object({
    type: z.literal("step-created"),
    stepId: z.string(),
    step: z.int(),
    purpose: z.enum(["train", "evaluate"]),
    groups: z.int(),
    rollouts: z.int(),
  }),
  z.object({
    type: z.literal("step-status"),
    stepId: z.string(),
    step: z.int(),
    purpose: z.enum(["train", "evaluate"]),
    from: z.enum(stepStates),
    to: z.enum(stepStates),
    reason: z.string().nullable(),
  }),
  /** A rollout's stage or state changed. */
  z.object({
    type: z.literal("rollout-status"),
    ...ref,
    stage: z.enum(stages),
    state: z.enum(rolloutStates),
    claim: z.int(),
    outcome: z.enum(rolloutOutcomes).nullable(),
    ending: z.enum(endingNames).nullable(),
    reward: z.number().nullable(),
    success: z.boolean().nullable(),
    reason: z.string().max(500).nullable(),
  }),
  /** Several rollouts moved alike in one statement (admission of a batch). */
  z.object({
    type: z.literal("rollouts-moved"),
    stage: z.enum(stages),
    state: z.enum(rolloutStates),
    rolloutIds: z.array(z.string()).max(40),
  }),
  /** More groups for a step that is gathering. */
  z.object({
    type: z.literal("groups-added"),
    stepId: z.string(),
    step: z.int(),
    groups: z.int(),
    rollouts: z.int(),
    /** How many of them stand for groups that were set aside. */
    replacing: z.int(),
  }),
  /** Groups that an update began without: they belong to a later step now. */
  z.object({
    type: z.literal("groups-moved"),
    fromStepId: z.string(),
    toStepId: z.string(),
    step: z.int(),
    groupIds: z.array(z.string()).max(40),
  }),
  /** The group does not count towards its step; `cancelled` of its rollouts were not settled yet. */
  z.object({
    type: z.literal("group-set-aside"),
    groupId: z.string(),
    stepId: z.string(),
    as: z.enum(setAsideReasons),
    cancelled: z.int(),
    reason: z.string().max(500),
  }),
  /** How many rollouts may run at once, as adaptive concurrency set it; null = the config's bound. */
  z.object({
    type: z.literal("run-limit-changed"),
    from: z.int().nullable(),
    to: z.int().nullable(),
    reason: z.string().max(500),
  }),
  /** Somebody changed how the run is dispatched while it runs: what was changed, as it is now. */
  z.object({ type: z.literal("dispatcher-changed"), change: DispatcherChange, by: z.string().max(200) }),
  /** Somebody lets what is begun come to its end and has nothing new started, or takes that back. */
  z.object({
    type: z.literal("drain-changed"),
    draining: z.boolean(),
    by: z.string().max(200),
    reason: z.string().max(500).nullable(),
  }),
  /** Somebody holds a step, a group or a rollout back from its next stage, or lets it go on. */
  z.object({
    type: z.literal("hold-changed"),
    part: z.enum(["step", "group", "rollout"]),
    id: z.string(),
    held: z.boolean(),
    by: z.string().max(200),
  }),
  z.object({
    type: z.literal("turn-sampled"),
    ...ref,
    turn: z.int(),
    promptTokens: z.int(),
    sampledTokens: z.int(),
    policyVersion: z.int(),
    sampleMs: z.number(),
    calls: z.array(z.string().max(64)).max(16),
    stopReason: z.enum(["stop", "length"]),
  }),
  z.object({
    type: z.literal("tools-ended"),
    ...ref,
    turn: z.int(),
    durationMs: z.number(),
    errors: z.int(),
  }),
  z.object({
    type: z.literal("sandbox-opened"),
    ...ref,
    sandboxId: z.string(),
    purpose: z.enum(sandboxPurposes),
    runtime: z.string(),
    openMs: z.number(),
    /** An environment that was reset: this rollout is the so manieth in it. Absent where it was opened for it. */
    place: z.int().optional(),
  }),
  z.object({
    type: z.literal("sandbox-closed"),
    ...ref,
    sandboxId: z.string(),
    purpose: z.enum(sandboxPurposes),
    state: z.enum(["kept", "closed", "lost"]),
    reason: z.string().max(500).nullable(),
  }),
  /** Somebody opened a shell in a sandbox, or left it. */
  z.object({
    type: z.literal("sandbox-shell"),
    ...ref,
    sandboxId: z.string(),
    action: z.enum(["opened", "closed"]),
    by: z.string().max(200),
  }),
  z.object({ type: z.literal("version-serving"), version: z.int(), step: z.int(), bootId: z.string() }),
  z.object({ type: z.literal("checkpoint-saved"), version: z.int(), name: z.string(), bytes: z.number().nullable() }),
  /** Taken out of use by the run's own rule; its files go after this. */
  z.object({ type: z.literal("checkpoint-removed"), version: z.int(), name: z.string(), bytes: z.number().nullable() }),
  /** Its server no longer has it, or it is damaged: the run goes on from an older one. */
  z.object({
    type: z.literal("checkpoint-lost"),
    version: z.int(),
    name: z.string(),
    reason: z.string().max(500),
  }),
  /** Somebody keeps a checkpoint whatever the run's rule says, or takes that back. */
  z.object({ type: z.literal("checkpoint-pinned"), version: z.int(), pinned: z.boolean(), by: z.string().max(200) }),
  /** Somebody serves a checkpoint as an endpoint with a key of its own, or no longer does. */
  z.object({ type: z.literal("checkpoint-served"), version: z.int(), served: z.boolean(), by: z.string().max(200) }),
  /** Somebody set the run back to a version; its later steps, if there were any, went to a run of their own. */
  z.object({
    type: z.literal("run-restored"),
    version: z.int(),
    supersededRunId: z.string().nullable(),
    /** The newest of them; null = there were none. */
    lastStep: z.int().nullable(),
    by: z.string().max(200),
  }),
  z.object({
    type: z.literal("model-adopted"),
    bootId: z.string(),
    checkpoint: z.string().nullable(),
    replayed: z.int(),
    /** The run's first model: nothing had started anew. Absent in events of earlier releases, which did not tell. */
    fresh: z.boolean().optional(),
  }),
  /** Points of one step were written; charts fetch them. */
  z.object({ type: z.literal("metrics-written"), step: z.int(), names: z.int() }),
  z.object({ type: z.literal("batch-requested"), batchId: z.string(), step: z.int(), groups: z.int() }),
  /** A trainer that was launched with the run is in this state. */
  z.object({
    type: z.literal("trainer-job"),
    attempt: z.int(),
    trainer: z.string(),
    state: z.enum(trainerJobStates),
    message: z.string().max(500).nullable(),
  }),
  z.object({ type: z.literal("note"), level: z.enum(["info", "warning", "error"]), message: z.string().max(1000) }),
]);
export type EventBody = z.infer<typeof EventBody>;
export type EventType = EventBody["type"];

export const RunEvent = z.object({
  runId: z.string(),
  seq: z.int().min(1),
  /** RFC 3339 UTC, the database's clock. */
  at: z.string(),
  body: EventBody,
});
export type RunEvent = z.infer<typeof RunEvent>;
export const maxEventBytes = 2048;
