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

/** What a tool gave back, as the model saw it. */
export interface ToolResult {
  readonly index: number;
  readonly output: string;
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
}
