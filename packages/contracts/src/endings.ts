/**
 * The one table of how a rollout can end and what that means for grading, the group baseline, training and retries.
 * Every other place reads it; none repeats it.
 */
import type { Boundary } from "./errors.ts";

export interface EndingRule {
  /** Shown on the page. */
  readonly label: string;
  readonly kind: "finished" | "cut" | "failed" | "cancelled";
  /** The verifier runs on what the rollout left. */
  readonly graded: boolean;
  /** The reward counts in the group's mean. */
  readonly inBaseline: boolean;
  /** Sampled tokens get loss mask 1 (a run may add `trainCut`). */
  readonly trained: boolean;
  /** Who may try again: nobody, a new attempt, or only the evaluate stage. */
  readonly retry: "none" | "attempt" | "evaluate" | "requeue";
  readonly boundary?: Boundary;
}

export const endings = {
  finish_tool: { label: "finished", kind: "finished", graded: true, inBaseline: true, trained: true, retry: "none" },
  answer: { label: "answered", kind: "finished", graded: true, inBaseline: true, trained: true, retry: "none" },
  empty_patch: { label: "empty patch", kind: "finished", graded: true, inBaseline: true, trained: true, retry: "none" },
  turn_limit: { label: "turn limit", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  time_limit: { label: "time limit", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  context_full: { label: "context full", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  length: { label: "cut by length", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  loop: { label: "stuck in a loop", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  no_call: { label: "no usable call", kind: "cut", graded: true, inBaseline: true, trained: false, retry: "none" },
  verifier_error: {
    label: "verifier error",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "evaluate",
    boundary: "verifier",
  },
  sandbox_lost: {
    label: "sandbox lost",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "attempt",
    boundary: "sandbox",
  },
  // Not lost: it can't be had, however often it is asked for. Whoever finds that out settles the rollout.
  sandbox_refused: {
    label: "no sandbox",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "none",
    boundary: "sandbox",
  },
  model_server: {
    label: "model server failed",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "attempt",
    boundary: "model-server",
  },
  worker_lost: {
    label: "worker lost",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "attempt",
    boundary: "infrastructure",
  },
  infrastructure: {
    label: "infrastructure",
    kind: "failed",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "attempt",
    boundary: "infrastructure",
  },
  cancelled: { label: "cancelled", kind: "cancelled", graded: false, inBaseline: false, trained: false, retry: "none" },
  not_needed: {
    label: "not needed",
    kind: "cancelled",
    graded: false,
    inBaseline: false,
    trained: false,
    retry: "none",
  },
  stale: { label: "stale", kind: "cancelled", graded: false, inBaseline: false, trained: false, retry: "requeue" },
} as const satisfies Record<string, EndingRule>;

export type Ending = keyof typeof endings;
export const endingNames = Object.keys(endings) as [Ending, ...Ending[]];

/** The rule for an ending, widened to the interface. */
export const endingRule = (ending: Ending): EndingRule => endings[ending];

/** Why a token carries loss mask 0; null means it is trained. Stored by position: append only. */
export const maskReasons = [
  "template",
  "observation",
  "hint",
  "ending-cut",
  "ending-failed",
  "no-reward",
  "no-logprob",
  "parse-retry",
  "stale",
  "zero-variance",
  "over-length",
  // A sampled token that is context here and trained in another row of the same trajectory (a broken prefix, a fork).
  "other-row",
  // The turn was cut by its token limit and the rollout went on: half a thought is no lesson.
  "turn-cut",
  // The server's counts and its token ids disagree: what was sampled is not known for certain.
  "incomplete-sample",
  // The trainer's probability of the token or of its whole rollout is too far from the sampler's (algorithm.offPolicy).
  "off-policy",
] as const;
export type MaskReason = (typeof maskReasons)[number];
