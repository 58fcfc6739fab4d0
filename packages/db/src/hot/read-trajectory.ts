/** What attempts of rollouts have committed: segments and turns, as they were written. */

import { groupBy } from "@rolldeck/contracts/group-by";
import {
  JsonObject,
  type Segment,
  SegmentOrigin,
  type TokenRange,
  type ToolResult,
  TurnNote,
  type TurnRecord,
} from "@rolldeck/contracts/segments";
import type pg from "pg";
import { z } from "zod";
import { decodeLogprobs, decodeTokens } from "./token-codec.ts";

/** A turn with what its calls gave back, in call order; null = started, not ended. */
export type CommittedTurn = TurnRecord & { readonly results: readonly (ToolResult | null)[] };
/** What one attempt of a rollout has committed. */
export interface Trajectory {
  readonly segments: readonly Segment[];
  readonly turns: readonly CommittedTurn[];
}
export interface AttemptRef {
  readonly rolloutId: string;
  readonly attempt: number;
}

const SegmentRow = z.object({
  rollout_id: z.string(),
  index: z.int(),
  origin: SegmentOrigin,
  length: z.int(),
  tokens: z.instanceof(Buffer),
  logprobs: z.instanceof(Buffer).nullable(),
  policy_version: z.int().nullable(),
});
const TurnRow = z.object({
  rollout_id: z.string(),
  turn: z.int(),
  prompt_ranges: z.array(z.int()),
  prompt_tokens: z.int(),
  sampled_segment: z.int(),
  sampled_tokens: z.int(),
  stop_reason: z.enum(["stop", "length"]),
  policy_version: z.int(),
  cache_hit_tokens: z.int(),
  sample_ms: z.number(),
  parse_error: z.string().nullable(),
  thread: z.string(),
  notes: z.array(TurnNote).nullable(),
});
const CallRow = z.object({
  rollout_id: z.string(),
  turn: z.int(),
  index: z.int(),
  name: z.string(),
  arguments: JsonObject,
  raw: z.string(),
  state: z.enum(["started", "ended"]),
  output: z.string().nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  duration_ms: z.number().nullable(),
  final_answer: z.string().nullable(),
  whole_bytes: z.coerce.number().nullable(),
  next_ranges: z.array(z.int()),
});
type CallRow = z.infer<typeof CallRow>;

const wanted = "unnest($1::text[], $2::int[]) as a (rollout_id, attempt)";
const queries = {
  segments: `select s.* from ${wanted} join segments s using (rollout_id, attempt) order by s.rollout_id, s.index`,
  turns: `select t.* from ${wanted} join transitions t using (rollout_id, attempt) order by t.rollout_id, t.turn`,
  calls: `select c.* from ${wanted} join tool_calls c using (rollout_id, attempt) order by c.rollout_id, c.turn, c.index`,
};

export async function readTrajectory(pool: pg.Pool, rolloutId: string, attempt: number): Promise<Trajectory> {
  const [trajectory] = await readTrajectories(pool, [{ rolloutId, attempt }]);
  return trajectory ?? { segments: [], turns: [] };
}

/** In the order asked. One attempt of a rollout each. */
export async function readTrajectories(pool: pg.Pool, attempts: readonly AttemptRef[]): Promise<Trajectory[]> {
  const values = [attempts.map((one) => one.rolloutId), attempts.map((one) => one.attempt)];
  const [segments, turns, calls] = await Promise.all([
    pool.query(queries.segments, values),
    pool.query(queries.turns, values),
    pool.query(queries.calls, values),
  ]);
  const segmentsOf = groupBy(z.array(SegmentRow).parse(segments.rows), (row) => row.rollout_id);
  const turnsOf = groupBy(z.array(TurnRow).parse(turns.rows), (row) => row.rollout_id);
  const callsOf = groupBy(z.array(CallRow).parse(calls.rows), (row) => `${row.rollout_id} ${row.turn}`);
  return attempts.map(({ rolloutId }) => ({
    segments: (segmentsOf.get(rolloutId) ?? []).map(segmentOf),
    turns: (turnsOf.get(rolloutId) ?? []).map((row) => turnOf(row, callsOf.get(`${rolloutId} ${row.turn}`) ?? [])),
  }));
}

/** Segments only, in the order asked. One attempt of a rollout each. */
export async function readSegments(pool: pg.Pool, attempts: readonly AttemptRef[]): Promise<Segment[][]> {
  const values = [attempts.map((one) => one.rolloutId), attempts.map((one) => one.attempt)];
  const { rows } = await pool.query(queries.segments, values);
  const segmentsOf = groupBy(z.array(SegmentRow).parse(rows), (row) => row.rollout_id);
  return attempts.map(({ rolloutId }) => (segmentsOf.get(rolloutId) ?? []).map(segmentOf));
}

const segmentOf = (row: z.infer<typeof SegmentRow>): Segment => ({
  index: row.index,
  origin: row.origin,
  tokens: decodeTokens(row.tokens, row.length),
  // A missing logprob stays NaN here: the mask rules look for it.
  logprobs: row.logprobs ? decodeLogprobs(row.logprobs).map((logprob) => logprob ?? Number.NaN) : null,
  policyVersion: row.policy_version,
});

const turnOf = (row: z.infer<typeof TurnRow>, calls: readonly CallRow[]): CommittedTurn => ({
  turn: row.turn,
  promptRanges: rangesOf(row.prompt_ranges),
  promptTokens: row.prompt_tokens,
  sampledSegment: row.sampled_segment,
  sampledTokens: row.sampled_tokens,
  stopReason: row.stop_reason,
  policyVersion: row.policy_version,
  cacheHitTokens: row.cache_hit_tokens,
  sampleMs: row.sample_ms,
  parseError: row.parse_error,
  thread: row.thread,
  notes: row.notes ?? [],
  nextRanges: nextRangesOf(calls),
  calls: calls.map(({ index, name, arguments: given, raw }) => ({ index, name, arguments: given, raw })),
  results: calls.map(resultOf),
});

const rangesOf = (flat: readonly number[]): TokenRange[] =>
  flat.flatMap((start, place) => (place % 2 === 0 ? [{ start, end: flat[place + 1] ?? start }] : []));

function nextRangesOf(calls: readonly CallRow[]): TokenRange[] | null {
  const flat = calls.findLast((call) => call.next_ranges.length > 0)?.next_ranges;
  return flat ? rangesOf(flat) : null;
}

function resultOf(call: CallRow): ToolResult | null {
  if (call.state === "started") return null;
  return {
    index: call.index,
    output: call.output ?? "",
    error: call.error_code === null ? null : { code: call.error_code, message: call.error_message ?? "" },
    durationMs: call.duration_ms ?? 0,
    ...(call.final_answer === null ? {} : { finalAnswer: call.final_answer }),
    ...(call.whole_bytes === null ? {} : { wholeBytes: call.whole_bytes }),
  };
}
