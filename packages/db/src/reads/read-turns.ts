/**
 * Turns of one attempt as rows and tokens; whoever has the tokenizer makes text of them. A page ends early when it would
 * hold more than `maxPageTokens`: no answer grows with the length of a rollout.
 *
 * What a turn added is what its prompt holds beyond the prompt and the sample of the turn before it in its thread (a
 * sub-agent's first turn: of the turn that called it), token by token: right also where contexts restart and threads mix.
 */
import { CallArtifact, type ContextChangeView } from "@rolldeck/contracts/api/rollouts";
import { JsonObject, type SegmentOrigin, type TokenRange, TurnNote } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { countPlaces, without } from "./range-sets.ts";
import { iso, type Queryable, readRows } from "./rows.ts";
import { type PlacedSegment, readLayout, readTokensOf, type SegmentTokens } from "./segment-layout.ts";

const maxPageTokens = 200_000;

const TransitionRow = z.object({
  turn: z.int(),
  thread: z.string(),
  notes: z.array(TurnNote).nullable(),
  ranges: z.array(z.int()),
  promptTokens: z.int(),
  sampledSegment: z.int(),
  sampledTokens: z.int(),
  cacheHitTokens: z.int(),
  policyVersion: z.int(),
  stopReason: z.enum(["stop", "length"]),
  sampleMs: z.number(),
  parseError: z.string().nullable(),
  at: z.string(),
  /** Of the turn before in the thread, or of the call that made it; null for the first of all. */
  knownRanges: z.array(z.int()).nullable(),
  knownSegment: z.int().nullable(),
});
type TransitionRow = z.infer<typeof TransitionRow>;

const CallRow = z.object({
  turn: z.int(),
  index: z.int(),
  name: z.string(),
  arguments: JsonObject,
  state: z.enum(["started", "ended"]),
  output: z.string().nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  durationMs: z.number().nullable(),
  wholeBytes: z.coerce.number().nullable(),
  nextRanges: z.array(z.int()),
  artifacts: z.array(CallArtifact),
});
type CallRow = z.infer<typeof CallRow>;

type RowOnly = "ranges" | "sampledSegment" | "knownRanges" | "knownSegment" | "notes";
export interface StoredTurn extends Omit<TransitionRow, RowOnly> {
  readonly notes: TurnNote[];
  readonly added: readonly { readonly origin: SegmentOrigin; readonly tokens: readonly number[] }[];
  readonly sampled: SegmentTokens;
  readonly promptRanges: TokenRange[];
  readonly sampledRange: TokenRange;
  readonly calls: Omit<CallRow, "turn" | "nextRanges">[];
  readonly contextChange: z.output<typeof ContextChangeView> | null;
}
/** A row with what its prompt holds that its thread has not seen before. */
interface PlacedRow {
  readonly row: TransitionRow;
  readonly prompt: TokenRange[];
  readonly added: readonly TokenRange[];
  readonly sampled: TokenRange;
}

/** Turns after `after`, at most `limit`. */
export async function readTurns(
  db: Queryable,
  page: { readonly rolloutId: string; readonly attempt: number; readonly after: number; readonly limit: number },
): Promise<{ turns: StoredTurn[]; more: boolean }> {
  const { rolloutId, attempt } = page;
  const rows = await readTransitions(db, page);
  const layout = await readLayout(db, rolloutId, attempt);
  const shown = fitPage(rows.slice(0, page.limit).map((row) => place(row, layout)));
  const [first, last] = [shown[0], shown.at(-1)];
  if (!first || !last) return { turns: [], more: false };
  const wanted = shown.flatMap(({ row, added }) => [
    row.sampledSegment,
    ...added.flatMap((range) => piecesOf(range, layout).map(({ segment }) => segment.index)),
  ]);
  const tokens = await readTokensOf(db, rolloutId, attempt, [...new Set(wanted)]);
  const calls = await readCalls(db, rolloutId, attempt, first.row.turn, last.row.turn);
  return {
    turns: shown.map((placed) => storedTurn(placed, layout, tokens, calls)),
    more: shown.length < rows.length,
  };
}

const readTransitions = (
  db: Queryable,
  page: { readonly rolloutId: string; readonly attempt: number; readonly after: number; readonly limit: number },
): Promise<TransitionRow[]> =>
  readRows(
    db,
    TransitionRow,
    `select t."turn", t."thread", t."notes", t."prompt_ranges" as "ranges", t."prompt_tokens" as "promptTokens",
       t."sampled_segment" as "sampledSegment", t."sampled_tokens" as "sampledTokens",
       t."cache_hit_tokens" as "cacheHitTokens", t."policy_version" as "policyVersion", t."stop_reason" as "stopReason",
       t."sample_ms" as "sampleMs", t."parse_error" as "parseError", ${iso('t."at"')} as "at",
       k."prompt_ranges" as "knownRanges", k."sampled_segment" as "knownSegment"
     from "transitions" t
     left join lateral (
       select p."prompt_ranges", p."sampled_segment" from "transitions" p
       where p."rollout_id" = t."rollout_id" and p."attempt" = t."attempt" and p."turn" < t."turn"
         and (p."thread" = t."thread" or p."turn"::text = split_part(regexp_replace(t."thread", '^.*/', ''), '.', 1))
       order by p."turn" desc limit 1) k on true
     where t."rollout_id" = $1 and t."attempt" = $2 and t."turn" > $3
     order by t."turn" limit $4`,
    [page.rolloutId, page.attempt, Math.min(page.after, 2_147_483_647), page.limit + 1],
  );

const rangeOf = (segment: PlacedSegment | undefined): TokenRange => ({
  start: segment?.start ?? 0,
  end: (segment?.start ?? 0) + (segment?.length ?? 0),
});

function place(row: TransitionRow, layout: readonly PlacedSegment[]): PlacedRow {
  const prompt = pairs(row.ranges);
  const known = row.knownSegment === null ? [] : [...pairs(row.knownRanges ?? []), rangeOf(layout[row.knownSegment])];
  return { row, prompt, added: without(prompt, known), sampled: rangeOf(layout[row.sampledSegment]) };
}

/** The rows whose tokens fit one page, at least one. */
function fitPage(rows: readonly PlacedRow[]): PlacedRow[] {
  let tokens = 0;
  const fitting = rows.filter(({ added, sampled }) => {
    tokens += countPlaces([...added, sampled]);
    return tokens <= maxPageTokens;
  });
  return fitting.length > 0 ? fitting : rows.slice(0, 1);
}

/** A range by the segments it touches; `from` and `to` count inside the segment. */
function piecesOf(
  range: TokenRange,
  layout: readonly PlacedSegment[],
): { segment: PlacedSegment; from: number; to: number }[] {
  return segmentsFrom(range.start, range.end, layout).flatMap((segment) => {
    const from = Math.max(range.start, segment.start) - segment.start;
    const to = Math.min(range.end, segment.start + segment.length) - segment.start;
    return to > from ? [{ segment, from, to }] : [];
  });
}

/** Segments that may touch [start, end), found by halving: a page asks for many ranges of a long layout. */
function segmentsFrom(start: number, end: number, layout: readonly PlacedSegment[]): readonly PlacedSegment[] {
  const firstAt = (reached: (segment: PlacedSegment) => boolean) => {
    let [low, high] = [0, layout.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const segment = layout[middle];
      if (segment && !reached(segment)) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return layout.slice(
    firstAt((segment) => segment.start + segment.length > start),
    firstAt((segment) => segment.start >= end),
  );
}

const readCalls = (db: Queryable, rolloutId: string, attempt: number, fromTurn: number, toTurn: number) =>
  readRows(
    db,
    CallRow,
    `select c."turn", c."index", c."name", c."arguments", c."state", c."output", c."duration_ms" as "durationMs",
       c."whole_bytes" as "wholeBytes", c."next_ranges" as "nextRanges",
       case when c."error_code" is not null
         then jsonb_build_object('code', c."error_code", 'message', coalesce(c."error_message", '')) end as "error",
       (select coalesce(jsonb_agg(jsonb_build_object('name', a."name", 'mediaType', a."media_type", 'bytes', a."bytes",
           'storedBytes', a."stored_bytes") order by a."name"), '[]')
         from "artifacts" a where a."rollout_id" = c."rollout_id" and a."attempt" = c."attempt" and a."turn" = c."turn"
           and a."index" = c."index") as "artifacts"
     from "tool_calls" c where c."rollout_id" = $1 and c."attempt" = $2 and c."turn" between $3 and $4
     order by c."turn", c."index"`,
    [rolloutId, attempt, fromTurn, toTurn],
  );

function storedTurn(
  { row, prompt, added, sampled }: PlacedRow,
  layout: readonly PlacedSegment[],
  tokens: ReadonlyMap<number, SegmentTokens>,
  calls: readonly CallRow[],
): StoredTurn {
  const { ranges: _, knownRanges: __, knownSegment: ___, sampledSegment, notes, ...facts } = row;
  const own = calls.filter((call) => call.turn === row.turn);
  return {
    ...facts,
    notes: notes ?? [],
    added: added
      .flatMap((range) => piecesOf(range, layout))
      .map(({ segment, from, to }) => ({
        origin: segment.origin,
        tokens: (tokens.get(segment.index)?.tokens ?? []).slice(from, to),
      })),
    sampled: tokens.get(sampledSegment) ?? { tokens: [], logprobs: null },
    promptRanges: prompt,
    sampledRange: sampled,
    calls: own.map(({ turn: ____, nextRanges: _____, ...call }) => call),
    contextChange: contextChange([...prompt, sampled], own, layout),
  };
}

/** What the turn's tools did to the prompt to come: its beginning against all that the turn had. */
function contextChange(
  before: readonly TokenRange[],
  calls: readonly CallRow[],
  layout: readonly PlacedSegment[],
): StoredTurn["contextChange"] {
  const flat = calls.findLast((call) => call.nextRanges.length > 0)?.nextRanges;
  if (!flat) return null;
  const next = pairs(flat);
  const newTokens = countPlaces(without(next, before));
  const keptTokens = countPlaces(next) - newTokens;
  // All of it stays: a sub-agent's turns lie between this turn and its answer, so the ranges had to be written down.
  if (keptTokens === countPlaces(before)) return null;
  const keepsSampled = next.some((range) =>
    piecesOf(range, layout).some(({ segment }) => segment.origin === "sampled"),
  );
  return {
    kind: keepsSampled ? "shortened" : "restart",
    keptTokens,
    droppedTokens: countPlaces(before) - keptTokens,
    newTokens,
  };
}

/** `[start, end, start, end …]` as ranges. */
export const pairs = (flat: readonly number[]): TokenRange[] =>
  flat.flatMap((start, index) => (index % 2 === 0 ? [{ start, end: flat[index + 1] ?? start }] : []));
