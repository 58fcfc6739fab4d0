/**
 * Turns of one attempt as rows and tokens; whoever has the tokenizer makes text of them. A page ends early when it would
 * hold more than `maxPageTokens`: no answer grows with the length of a rollout.
 */
import { JsonObject, type SegmentOrigin, type TokenRange } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { iso, type Queryable, readRows } from "./rows.ts";
import { type PlacedSegment, readLayout, readSegmentTokens, type SegmentTokens } from "./segment-layout.ts";

const maxPageTokens = 200_000;

const TransitionRow = z.object({
  turn: z.int(),
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
  /** Sampled segment of the turn before; −1 for the first. */
  previousSegment: z.int(),
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
});

export interface StoredTurn extends Omit<TransitionRow, "ranges" | "previousSegment" | "sampledSegment"> {
  readonly added: readonly { readonly origin: SegmentOrigin; readonly tokens: readonly number[] }[];
  readonly sampled: SegmentTokens;
  readonly promptRanges: TokenRange[];
  readonly sampledRange: TokenRange;
  readonly calls: Omit<z.infer<typeof CallRow>, "turn">[];
}

/** Turns after `after`, at most `limit`. */
export async function readTurns(
  db: Queryable,
  page: { readonly rolloutId: string; readonly attempt: number; readonly after: number; readonly limit: number },
): Promise<{ turns: StoredTurn[]; more: boolean }> {
  const rows = await readTransitions(db, page);
  const layout = await readLayout(db, page.rolloutId, page.attempt);
  const shown = fitPage(rows.slice(0, page.limit), layout);
  const [first, last] = [shown[0], shown.at(-1)];
  if (!first || !last) return { turns: [], more: false };
  const tokens = await readSegmentTokens(
    db,
    page.rolloutId,
    page.attempt,
    first.previousSegment + 1,
    last.sampledSegment,
  );
  const calls = await readCalls(db, page.rolloutId, page.attempt, first.turn, last.turn);
  return {
    turns: shown.map((row) => storedTurn(row, layout, tokens, calls)),
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
    `select t."turn", t."prompt_ranges" as "ranges", t."prompt_tokens" as "promptTokens",
       t."sampled_segment" as "sampledSegment", t."sampled_tokens" as "sampledTokens",
       t."cache_hit_tokens" as "cacheHitTokens", t."policy_version" as "policyVersion", t."stop_reason" as "stopReason",
       t."sample_ms" as "sampleMs", t."parse_error" as "parseError", ${iso('t."at"')} as "at",
       coalesce((select max(p."sampled_segment") from "transitions" p where p."rollout_id" = t."rollout_id"
         and p."attempt" = t."attempt" and p."turn" < t."turn"), -1) as "previousSegment"
     from "transitions" t where t."rollout_id" = $1 and t."attempt" = $2 and t."turn" > $3
     order by t."turn" limit $4`,
    [page.rolloutId, page.attempt, Math.min(page.after, 2_147_483_647), page.limit + 1],
  );

/** The rows whose tokens fit one page, at least one. */
function fitPage(rows: readonly TransitionRow[], layout: readonly PlacedSegment[]): TransitionRow[] {
  let tokens = 0;
  const fitting = rows.filter((row) => {
    for (const segment of layout.slice(row.previousSegment + 1, row.sampledSegment + 1)) tokens += segment.length;
    return tokens <= maxPageTokens;
  });
  return fitting.length > 0 ? fitting : rows.slice(0, 1);
}

const readCalls = (db: Queryable, rolloutId: string, attempt: number, fromTurn: number, toTurn: number) =>
  readRows(
    db,
    CallRow,
    `select "turn", "index", "name", "arguments", "state", "output", "duration_ms" as "durationMs",
       case when "error_code" is not null
         then jsonb_build_object('code', "error_code", 'message', coalesce("error_message", '')) end as "error"
     from "tool_calls" where "rollout_id" = $1 and "attempt" = $2 and "turn" between $3 and $4
     order by "turn", "index"`,
    [rolloutId, attempt, fromTurn, toTurn],
  );

function storedTurn(
  row: TransitionRow,
  layout: readonly PlacedSegment[],
  tokens: ReadonlyMap<number, SegmentTokens>,
  calls: readonly z.infer<typeof CallRow>[],
): StoredTurn {
  const { ranges, previousSegment, sampledSegment, ...facts } = row;
  const place = layout[sampledSegment];
  return {
    ...facts,
    added: layout
      .slice(previousSegment + 1, sampledSegment)
      .map(({ index, origin }) => ({ origin, tokens: tokens.get(index)?.tokens ?? [] })),
    sampled: tokens.get(sampledSegment) ?? { tokens: [], logprobs: null },
    promptRanges: pairs(ranges),
    sampledRange: { start: place?.start ?? 0, end: (place?.start ?? 0) + (place?.length ?? 0) },
    calls: calls.filter((call) => call.turn === row.turn).map(({ turn: _, ...call }) => call),
  };
}

/** `[start, end, start, end …]` as ranges. */
export const pairs = (flat: readonly number[]): TokenRange[] =>
  flat.flatMap((start, index) => (index % 2 === 0 ? [{ start, end: flat[index + 1] ?? start }] : []));
