/**
 * What a run began and did not train, by task and length: `/api/v1/runs/{id}/discards`. Where long rollouts of a task are left out more
 * often than short ones, the policy learns less and less of what takes long.
 */
import { z } from "zod";

/** Why a rollout was left out. */
export const discardReasons = {
  stale: {
    label: "too old",
    definition: "Its group lay further behind the learner than dispatcher.maxStaleness allows.",
  },
  "zero-variance": {
    label: "equal rewards",
    definition: "All rewards of its group were equal, and the config leaves such groups out.",
  },
  "not-needed": {
    label: "not needed",
    definition: "Others were scored first: started beyond what the step or its group needs.",
  },
  cancelled: {
    label: "cancelled",
    definition: "Its rollout, group or step was cancelled, or its step made no update.",
  },
  failed: { label: "not scored", definition: "It has no score: its stages failed." },
} as const satisfies Record<string, { label: string; definition: string }>;
export type DiscardReason = keyof typeof discardReasons;
export const discardReasonNames = Object.keys(discardReasons) as [DiscardReason, ...DiscardReason[]];

export const DiscardRow = z.object({
  task: z.string(),
  /** Turns of the attempt that counts: from here to twice as many, less one; 0: it had none. */
  fromTurns: z.int(),
  /** Settled rollouts of train steps. */
  rollouts: z.int(),
  /** Of them, those that were left out, by why. */
  discarded: z.record(z.enum(discardReasonNames), z.int()),
});
export type DiscardRow = z.infer<typeof DiscardRow>;

export const Discards = z.object({
  runId: z.string(),
  /** By task, then length. */
  rows: z.array(DiscardRow),
});
export type Discards = z.infer<typeof Discards>;
