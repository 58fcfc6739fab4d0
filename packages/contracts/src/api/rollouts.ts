/** The trajectory inspector and `/api/v1/rollouts`. Skeleton first; token arrays only on demand. */
import { z } from "zod";
import { endingNames, maskReasons } from "../endings.ts";
import { rolloutOutcomes, rolloutStates, stages } from "../lifecycle.ts";
import { setAsideReasons } from "../plan.ts";
import { JsonObject, segmentOrigins, TokenRange, TurnNote } from "../segments.ts";
import { RolloutId, RunId } from "./runs.ts";

/** Kept in four-byte columns: a number that does not fit is refused where it comes in. */
const Int4 = z.int().max(2_147_483_647);

export const RolloutRef = z.strictObject({ rolloutId: RolloutId, attempt: Int4.min(1).optional() });

export const RolloutDetail = z.object({
  rolloutId: z.string(),
  runId: z.string(),
  runName: z.string(),
  step: z.int(),
  purpose: z.enum(["train", "evaluate"]),
  taskSet: z.string(),
  instanceId: z.string(),
  groupId: z.string(),
  sample: z.int(),
  /** The group's rollouts in sample order, itself included. */
  siblings: z.array(
    z.object({
      rolloutId: z.string(),
      sample: z.int(),
      reward: z.number().nullable(),
      success: z.boolean().nullable(),
      ending: z.enum(endingNames).nullable(),
    }),
  ),
  stage: z.enum(stages),
  state: z.enum(rolloutStates),
  outcome: z.enum(rolloutOutcomes).nullable(),
  ending: z.enum(endingNames).nullable(),
  reason: z.string().nullable(),
  reward: z.number().nullable(),
  /** What the verifier told beside the reward: numbers that add up to it, and words. */
  rewardParts: z.record(z.string(), z.union([z.number(), z.string()])),
  success: z.boolean().nullable(),
  finalAnswer: z.string().nullable(),
  /** What the verifier wants people to look at; never part of the reward. */
  flags: z.array(z.string()),
  /** A person holds it, or its group: it is not admitted to its next stage. */
  held: z.boolean(),
  /** Why its group does not count towards its step; null = it does. */
  setAside: z.enum(setAsideReasons).nullable(),
  /** Policy version that served when its present attempt began to run; null = not yet. */
  firstVersion: z.int().nullable(),
  attempt: z.int(),
  attempts: z.array(
    z.object({
      attempt: z.int(),
      startedAt: z.string().nullable(),
      endedAt: z.string().nullable(),
      reason: z.string().nullable(),
      turns: z.int(),
    }),
  ),
  /** What training did with it: trained, masked (why), or not reached. */
  fate: z.object({
    state: z.enum(["trained", "masked", "pending", "not-trained"]),
    reason: z.string().nullable(),
    advantage: z.number().nullable(),
    rows: z.int(),
  }),
  policyVersions: z.array(z.int()),
  /** Add up to the total. Hints are ours, as the template is: the policy sampled neither. */
  tokens: z.object({ sampled: z.int(), observation: z.int(), template: z.int(), hint: z.int(), total: z.int() }),
  spans: z.array(
    z.object({
      stage: z.enum(stages),
      attempt: z.int(),
      queuedAt: z.string().nullable(),
      startedAt: z.string().nullable(),
      endedAt: z.string().nullable(),
      workerId: z.string().nullable(),
    }),
  ),
  createdAt: z.string(),
  settledAt: z.string().nullable(),
});
export type RolloutDetail = z.infer<typeof RolloutDetail>;

export const ReadTurns = z.strictObject({
  rolloutId: RolloutId,
  attempt: Int4.min(1).optional(),
  after: Int4.min(-1).default(-1),
  limit: z.int().min(1).max(200).default(100),
});
/** Text is derived from the stored tokens when read; long texts are cut with `cutCharacters` telling how much. */
export const TextPreview = z.object({ text: z.string(), cutCharacters: z.int() });
/** What a tool gave back in full; at `/api/v1/rollouts/{id}/artifacts/{turn}/{index}/{name}`. */
export const CallArtifact = z.object({
  name: z.string(),
  mediaType: z.string(),
  /** Of the whole; `storedBytes` of what is kept of it, which is less where the whole was too large. */
  bytes: z.number(),
  storedBytes: z.number(),
});
/**
 * A tool of this turn changed what the agent's next prompt begins with. `restart`: nothing the policy wrote is left in it.
 * Counts are tokens against the turn's own prompt and sample.
 */
export const ContextChangeView = z.object({
  kind: z.enum(["restart", "shortened"]),
  keptTokens: z.int(),
  droppedTokens: z.int(),
  newTokens: z.int(),
});
export const TurnView = z.object({
  turn: z.int(),
  /** As in TurnRecord: "" is the rollout's own agent, `3.0` the sub-agent that call 0 of turn 3 made. */
  thread: z.string(),
  notes: z.array(TurnNote),
  /** What came before the model's words in this turn and is not in its thread's turn before: template, observation, hint. */
  added: z.array(z.object({ origin: z.enum(segmentOrigins), preview: TextPreview, tokens: z.int() })),
  sampled: TextPreview,
  /** The sampled text's thinking, and what it says beside thinking and calls; both null where it holds no thinking. */
  reasoning: TextPreview.nullable(),
  content: TextPreview.nullable(),
  promptTokens: z.int(),
  sampledTokens: z.int(),
  cacheHitTokens: z.int(),
  policyVersion: z.int(),
  stopReason: z.enum(["stop", "length"]),
  sampleMs: z.number(),
  parseError: z.string().nullable(),
  meanLogprob: z.number().nullable(),
  calls: z.array(
    z.object({
      index: z.int(),
      name: z.string(),
      arguments: JsonObject,
      state: z.enum(["started", "ended"]),
      output: TextPreview.nullable(),
      error: z.object({ code: z.string(), message: z.string() }).nullable(),
      durationMs: z.number().nullable(),
      /** UTF-8 bytes of the whole output where the model saw a cut version of it. */
      wholeBytes: z.number().nullable(),
      artifacts: z.array(CallArtifact),
    }),
  ),
  contextChange: ContextChangeView.nullable(),
  /** Where this turn's tokens lie in the trajectory. */
  promptRanges: z.array(TokenRange),
  sampledRange: TokenRange,
  at: z.string(),
});
export type TurnView = z.infer<typeof TurnView>;
export const TurnPage = z.object({
  rolloutId: z.string(),
  attempt: z.int(),
  turns: z.array(TurnView),
  more: z.boolean(),
});

export const ReadTokens = z.strictObject({
  rolloutId: RolloutId,
  attempt: Int4.min(1).optional(),
  start: Int4.min(0).default(0),
  end: z.int().min(0).max(10_000_000).optional(),
});
/** Parallel arrays over tokens [start, end), at most 16,384 at once. Missing is null, never 0. */
export const TokenPage = z.object({
  rolloutId: z.string(),
  attempt: z.int(),
  start: z.int(),
  total: z.int(),
  ids: z.array(z.int()),
  texts: z.array(z.string()),
  origins: z.array(z.enum(segmentOrigins)),
  turns: z.array(z.int()),
  logprobs: z.array(z.number().nullable()),
  trainerLogprobs: z.array(z.number().nullable()),
  advantages: z.array(z.number().nullable()),
  maskReasons: z.array(z.enum(maskReasons).nullable()),
  policyVersions: z.array(z.int().nullable()),
});
export type TokenPage = z.infer<typeof TokenPage>;
export const maxTokenPage = 16_384;

/** Driven runs. */
export const RequestBatch = z.strictObject({
  runId: RunId,
  /** Idempotent by (run, trainer step). */
  trainerStep: Int4.min(1),
  instances: z
    .array(z.strictObject({ taskSet: Int4.min(0), index: Int4.min(0) }))
    .min(1)
    .max(4096),
  samples: z.int().min(1).max(256),
  policyVersion: Int4.min(0),
  deadlineMs: z.int().min(1000).max(86_400_000).nullish(),
});
export const BatchReply = z.object({
  batchId: z.string(),
  state: z.enum(["requested", "gathering", "done", "cancelled"]),
});
export const ReadBatch = z.strictObject({
  runId: RunId,
  batchId: z.string().max(40),
  cursor: z.int().min(0).default(0),
  limit: z.int().min(1).max(256).default(64),
});
export const FinishedRolloutRow = z.object({
  rolloutId: z.string(),
  /** As the request named its instance. */
  taskSet: z.int(),
  index: z.int(),
  instanceId: z.string(),
  sample: z.int(),
  outcome: z.enum(rolloutOutcomes),
  ending: z.enum(endingNames),
  reward: z.number().nullable(),
  /** Training rows: whole sequences with masks; logprob null where not sampled. */
  rows: z.array(
    z.object({ tokens: z.array(z.int()), mask: z.array(z.int()), logprobs: z.array(z.number().nullable()) }),
  ),
});
export const BatchPage = z.object({
  batchId: z.string(),
  state: z.string(),
  rollouts: z.array(FinishedRolloutRow),
  cursor: z.int(),
  done: z.boolean(),
});
export const TrainerHeartbeat = z.strictObject({
  runId: RunId,
  leaseMs: z.int().min(5_000).max(3_600_000).default(60_000),
  policyVersion: Int4.min(0).optional(),
});
