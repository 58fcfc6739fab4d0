/**
 * A trajectory with what an agent may do to its context: threads, restarts, hints, notes, cut outputs, artifacts. Each turn says
 * what its prompt gained; prompts and ranges follow from that. Tokens are bytes of text, so tests can read them.
 */
import { gzipSync } from "node:zlib";
import type { JsonObject, SegmentOrigin, TokenRange, TurnNote } from "@rolldeck/contracts/segments";
import type pg from "pg";
import { encodeLogprobs, encodeTokens } from "../src/hot/token-codec.ts";

export interface ScriptedSegment {
  readonly origin: SegmentOrigin;
  readonly text: string;
}
export interface ScriptedCall {
  readonly name: string;
  readonly arguments?: JsonObject;
  readonly output?: string;
  readonly error?: { readonly code: string; readonly message: string };
  readonly wholeBytes?: number;
  /** Kept in full as an artifact `output.txt`. */
  readonly artifact?: string;
}
export interface ScriptedTurn {
  readonly thread?: string;
  /** Before the sample, beyond what the thread's context holds. */
  readonly added: readonly ScriptedSegment[];
  readonly says: string;
  readonly stopReason?: "stop" | "length";
  readonly parseError?: string;
  readonly notes?: readonly TurnNote[];
  readonly calls?: readonly ScriptedCall[];
  /** The turn's tools change the context: segments that stay (by index), then new ones. */
  readonly context?: { readonly keep: readonly number[]; readonly added: readonly ScriptedSegment[] };
}

/** Where a segment's tokens lie in the trajectory. */
export interface PlacedSegment extends TokenRange {
  readonly index: number;
  readonly origin: SegmentOrigin;
}
type Placed = PlacedSegment;

/** @returns the segments in order */
export async function seedAgentTrajectory(
  pool: pg.Pool,
  rolloutId: string,
  turns: readonly ScriptedTurn[],
): Promise<readonly PlacedSegment[]> {
  const placed: Placed[] = [];
  const contexts = new Map<string, Placed[]>();
  const append = async ({ origin, text }: ScriptedSegment): Promise<Placed> => {
    const index = placed.length;
    const start = placed.at(-1)?.end ?? 0;
    const tokens = [...Buffer.from(text)];
    const logprobs = origin === "sampled" ? encodeLogprobs(tokens.map((_, at) => -((at * 7) % 40) / 20)) : null;
    await pool.query(
      `insert into segments (rollout_id, attempt, index, origin, length, tokens, logprobs, policy_version)
       values ($1, 1, $2, $3, $4, $5, $6, $7)`,
      [rolloutId, index, origin, tokens.length, encodeTokens(tokens), logprobs, logprobs ? 3 : null],
    );
    const segment = { index, origin, start, end: start + tokens.length };
    placed.push(segment);
    return segment;
  };
  const appendAll = async (segments: readonly ScriptedSegment[]): Promise<Placed[]> => {
    const list: Placed[] = [];
    for (const segment of segments) list.push(await append(segment));
    return list;
  };
  for (const [number, turn] of turns.entries()) {
    const thread = turn.thread ?? "";
    const prompt = [...(contexts.get(thread) ?? []), ...(await appendAll(turn.added))];
    const sampled = await append({ origin: "sampled", text: turn.says });
    const { context } = turn;
    const next = context
      ? [...context.keep.flatMap((index) => placed[index] ?? []), ...(await appendAll(context.added))]
      : null;
    contexts.set(thread, next ?? [...prompt, sampled]);
    await insertTurn(pool, rolloutId, number, turn, prompt, sampled);
    await insertCalls(pool, rolloutId, number, turn, next);
  }
  return placed;
}

const flat = (segments: readonly Placed[]): number[] => segments.flatMap(({ start, end }) => [start, end]);

async function insertTurn(
  pool: pg.Pool,
  rolloutId: string,
  number: number,
  turn: ScriptedTurn,
  prompt: readonly Placed[],
  sampled: Placed,
): Promise<void> {
  await pool.query(
    `insert into transitions (rollout_id, attempt, turn, claim, prompt_ranges, prompt_tokens, sampled_segment, sampled_tokens,
       stop_reason, policy_version, cache_hit_tokens, sample_ms, parse_error, thread, notes)
     values ($1, 1, $2, 1, $3, $4, $5, $6, $7, 3, 0, 12.5, $8, $9, $10)`,
    [
      rolloutId,
      number,
      flat(prompt),
      prompt.reduce((sum, { start, end }) => sum + end - start, 0),
      sampled.index,
      sampled.end - sampled.start,
      turn.stopReason ?? "stop",
      turn.parseError ?? null,
      turn.thread ?? "",
      turn.notes ? JSON.stringify(turn.notes) : null,
    ],
  );
}

async function insertCalls(
  pool: pg.Pool,
  rolloutId: string,
  number: number,
  turn: ScriptedTurn,
  next: readonly Placed[] | null,
): Promise<void> {
  const calls = turn.calls ?? [];
  for (const [index, call] of calls.entries()) {
    await pool.query(
      `insert into tool_calls (rollout_id, attempt, turn, index, name, arguments, raw, state, output, error_code, error_message,
         duration_ms, whole_bytes, next_ranges)
       values ($1, 1, $2, $3, $4, $5, '', 'ended', $6, $7, $8, 1.5, $9, $10)`,
      [
        rolloutId,
        number,
        index,
        call.name,
        call.arguments ?? {},
        call.output ?? "",
        call.error?.code ?? null,
        call.error?.message ?? null,
        call.wholeBytes ?? null,
        next && index === calls.length - 1 ? flat(next) : [],
      ],
    );
    if (call.artifact === undefined) continue;
    const bytes = Buffer.byteLength(call.artifact);
    await pool.query(
      `insert into artifacts (rollout_id, attempt, turn, index, name, media_type, bytes, stored_bytes, content)
       values ($1, 1, $2, $3, 'output.txt', 'text/plain; charset=utf-8', $4, $5, $6)`,
      [rolloutId, number, index, bytes, bytes, gzipSync(call.artifact)],
    );
  }
}
