/**
 * Token history as stored: a trajectory (one attempt of a rollout) owns an append-only list of segments; a turn's prompt
 * is a list of ranges over it. Invariants: segment index counts from 0 without gaps; `logprobs`, when present, has the
 * length of `tokens`; only `sampled` segments carry logprobs and a policy version.
 */
import { z } from "zod";

export const segmentOrigins = ["template", "observation", "hint", "sampled"] as const;
export const SegmentOrigin = z.enum(segmentOrigins);
export type SegmentOrigin = z.infer<typeof SegmentOrigin>;

export interface Segment {
  readonly index: number;
  readonly origin: SegmentOrigin;
  readonly tokens: readonly number[];
  /** Natural-log probabilities under the sampling policy; null when the origin is not `sampled`. */
  readonly logprobs: readonly number[] | null;
  readonly policyVersion: number | null;
}

/** Tokens [start, end) of the concatenation of the trajectory's segments. */
export const TokenRange = z.object({ start: z.int().min(0), end: z.int().min(0) });
export type TokenRange = z.infer<typeof TokenRange>;

export const JsonObject = z.record(z.string(), z.json());
export type JsonObject = z.infer<typeof JsonObject>;

/** A call the model made, as parsed from its text. `raw` is the exact text it came from. */
export const ToolCall = z.object({
  index: z.int().min(0),
  name: z.string(),
  arguments: JsonObject,
  raw: z.string(),
});
export type ToolCall = z.infer<typeof ToolCall>;

/**
 * A fact about a turn that people should see, and that changes nothing by itself. `repair`: call text was mended by a stated
 * rule; `coercion`: an argument was read as another type; `dialect`: the text looks like another call format (said once a
 * rollout); `truncated`: the turn was cut; `usage`: the server's token counts and its token ids disagree; `drift`: the server
 * saw other prompt tokens than were sent; `calls`: calls were left out by the task's call policy.
 */
export const turnNoteKinds = ["repair", "coercion", "dialect", "truncated", "usage", "drift", "calls"] as const;
export const TurnNote = z.object({ kind: z.enum(turnNoteKinds), message: z.string().max(500) });
export type TurnNote = z.infer<typeof TurnNote>;

/** What a tool gave back, as the model saw it. */
export interface ToolResult {
  readonly index: number;
  readonly output: string;
  /** UTF-8 bytes of the whole output when `output` is a cut version of it; absent when nothing was cut. */
  readonly wholeBytes?: number;
  /** A tool error is an observation, not an ending. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly durationMs: number;
  /** The tool ended the rollout with this answer (the finish tool). */
  readonly finalAnswer?: string;
}

/** One model call. Written with its sampled segment, before any of its tool calls runs. */
export interface TurnRecord {
  readonly turn: number;
  readonly promptRanges: readonly TokenRange[];
  readonly promptTokens: number;
  readonly sampledSegment: number;
  readonly sampledTokens: number;
  readonly stopReason: "stop" | "length";
  readonly policyVersion: number;
  readonly cacheHitTokens: number;
  readonly sampleMs: number;
  /** Set when the text could not be parsed into calls; the model is told. */
  readonly parseError: string | null;
  readonly calls: readonly ToolCall[];
  /**
   * Which agent took the turn: "" is the rollout's own; a sub-agent's is the place of the call that made it, `turn.index`,
   * after its parent's thread and a slash where that is not "": `3.0/5.1`.
   */
  readonly thread: string;
  readonly notes: readonly TurnNote[];
  /**
   * Where the turn's tools changed the agent's context: how the thread's next prompt begins, instead of this turn's prompt,
   * sample and what followed. Null otherwise. Written with the turn's results.
   */
  readonly nextRanges: readonly TokenRange[] | null;
}

/** Thread of the sub-agent that a call makes, as `TurnRecord.thread` has it. */
export const threadOfCall = (turn: Pick<TurnRecord, "turn" | "thread">, index: number): string =>
  `${turn.thread === "" ? "" : `${turn.thread}/`}${turn.turn}.${index}`;

/** Results of some of a turn's calls and what the model will see of them. */
export interface TurnResults {
  readonly turn: number;
  readonly results: readonly ToolResult[];
  readonly segments: readonly Segment[];
  readonly durationMs: number;
  /** As in TurnRecord; only with the last results of a turn. */
  readonly nextRanges: readonly TokenRange[] | null;
}
