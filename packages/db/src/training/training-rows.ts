/**
 * What an update trains, stored before it is sent, so that a lost update can be replayed exactly. Rows refer to the trajectory's
 * tokens by ranges; ids and sampling logprobs are read from the segments again.
 */

import { type MaskReason, maskReasons } from "@rolldeck/contracts/endings";
import { FencedError } from "@rolldeck/contracts/errors";
import type { Segment, TokenRange } from "@rolldeck/contracts/segments";
import type pg from "pg";
import { z } from "zod";
import { groupBy } from "../group-by.ts";
import { readSegments } from "../hot/read-trajectory.ts";
import { encodeLogprobs } from "../hot/token-codec.ts";

/** `count` tokens in a row with the same fate; null = trained. */
export interface MaskRun {
  readonly count: number;
  readonly reason: MaskReason | null;
}
export interface TrainingRow {
  readonly row: number;
  readonly rolloutId: string;
  readonly attempt: number;
  /** Over the trajectory's tokens, in order. */
  readonly ranges: readonly TokenRange[];
  readonly mask: readonly MaskRun[];
  readonly advantage: number;
  /** weight ÷ denominator: what every token's advantage is multiplied by before it is sent. */
  readonly scale: number;
  /** False: counted, but no forward pass. */
  readonly sent: boolean;
}
/** A stored row with its tokens, as an update sends it again. */
export interface StoredTrainingRow extends TrainingRow {
  readonly tokens: readonly number[];
  /** Sampling logprobs; null where not sampled. */
  readonly logprobs: readonly (number | null)[];
}
export interface StepRows {
  readonly stepId: string;
  readonly step: number;
  readonly rows: StoredTrainingRow[];
}

const heldStep = `held as materialized (
  select id, run_id from steps where id = $1 and claim = $2 and state = 'updating' and worker_id is not null for no key update
)`;

const writeSql = `
with ${heldStep},
put as (
  insert into training_rows (step_id, row, run_id, rollout_id, attempt, ranges, mask, advantage, scale, sent)
  select h.id, t.row, h.run_id, t.rollout_id, t.attempt, t.ranges::int[], t.mask::int[], t.advantage, t.scale, t.sent
  from held h, unnest($3::int[], $4::text[], $5::int[], $6::text[], $7::text[], $8::float8[], $9::float8[], $10::boolean[])
    as t (row, rollout_id, attempt, ranges, mask, advantage, scale, sent)
  where not exists (select from training_rows where step_id = h.id)
  returning 1
)
select (select count(*) from held)::int as held, (select count(*) from put)::int as written`;

/** Stores a step's rows once: a second call with the same step leaves the first rows. @throws FencedError */
export async function writeTrainingRows(
  pool: pg.Pool,
  step: { readonly stepId: string; readonly claim: number },
  rows: readonly TrainingRow[],
): Promise<{ written: boolean }> {
  const flat = (numbers: readonly number[]): string => `{${numbers.join(",")}}`;
  const result = await pool.query<{ held: number; written: number }>(writeSql, [
    step.stepId,
    step.claim,
    rows.map((row) => row.row),
    rows.map((row) => row.rolloutId),
    rows.map((row) => row.attempt),
    rows.map((row) => flat(row.ranges.flatMap(({ start, end }) => [start, end]))),
    rows.map((row) =>
      flat(row.mask.flatMap(({ count, reason }) => [count, reason ? maskReasons.indexOf(reason) : -1])),
    ),
    rows.map((row) => row.advantage),
    rows.map((row) => row.scale),
    rows.map((row) => row.sent),
  ]);
  if (!result.rows[0]?.held) throw new FencedError(`the update of step ${step.stepId}`);
  return { written: result.rows[0].written === rows.length };
}

const Row = z.object({
  stepId: z.string(),
  step: z.int(),
  row: z.int(),
  rolloutId: z.string(),
  attempt: z.int(),
  ranges: z.array(z.int()),
  mask: z.array(z.int()),
  advantage: z.number(),
  scale: z.number(),
  sent: z.boolean(),
});

/** Rows of the done and updating train steps fromStep…toStep, in order: what a replay sends. */
export async function readTrainingRows(
  pool: pg.Pool,
  runId: string,
  fromStep: number,
  toStep: number,
): Promise<StepRows[]> {
  const { rows } = await pool.query(
    `select t.step_id as "stepId", s.step, t.row, t.rollout_id as "rolloutId", t.attempt, t.ranges, t.mask, t.advantage, t.scale, t.sent
     from steps s join training_rows t on t.step_id = s.id
     where s.run_id = $1 and s.purpose = 'train' and s.step between $2 and $3 and s.state in ('updating', 'done')
     order by s.step, t.row`,
    [runId, fromStep, toStep],
  );
  const steps: StepRows[] = [];
  for (const [stepId, found] of groupBy(z.array(Row).parse(rows), (row) => row.stepId)) {
    steps.push({ stepId, step: found[0]?.step ?? 0, rows: await withTokens(pool, found) });
  }
  return steps;
}

async function withTokens(pool: pg.Pool, rows: readonly z.infer<typeof Row>[]): Promise<StoredTrainingRow[]> {
  const attempts = [...new Map(rows.map((row) => [row.rolloutId, row])).values()];
  const segments = await readSegments(pool, attempts);
  const layout = new Map(attempts.map(({ rolloutId }, place) => [rolloutId, tokensOf(segments[place] ?? [])]));
  return rows.map(({ stepId: _, step: __, mask, ...row }) => {
    const ranges = pairs(row.ranges).map(([start, end]) => ({ start, end }));
    const tokens = layout.get(row.rolloutId) ?? [];
    const own = ranges.flatMap(({ start, end }) => tokens.slice(start, end));
    return {
      ...row,
      ranges,
      mask: pairs(mask).map(([count, reason]) => ({ count, reason: maskReasons[reason] ?? null })),
      tokens: own.map((token) => token.id),
      logprobs: own.map((token) => token.logprob),
    };
  });
}

const tokensOf = (segments: readonly Segment[]): { id: number; logprob: number | null }[] =>
  segments.flatMap(({ tokens, logprobs }) => tokens.map((id, place) => ({ id, logprob: logprobs?.[place] ?? null })));

const pairs = (flat: readonly number[]): [number, number][] =>
  flat.flatMap((first, place) => (place % 2 === 0 ? [[first, flat[place + 1] ?? 0]] : []));

const annotateSql = `
with ${heldStep},
put as (
  update training_rows t set trainer_logprobs = substring($5::bytea from a.place for a.bytes)
  from held h, unnest($3::int[], $4::int[], $6::int[]) as a (row, place, bytes)
  where t.step_id = h.id and t.row = a.row
  returning 1
)
select (select count(*) from held)::int as held, (select count(*) from put)::int as written`;

/** Annotates rows with what the trainer computed: one logprob per token after the first. @throws FencedError */
export async function annotateTrainerLogprobs(
  pool: pg.Pool,
  step: { readonly stepId: string; readonly claim: number },
  rows: readonly { readonly row: number; readonly logprobs: readonly (number | null)[] }[],
): Promise<void> {
  const parts = rows.map((row) => encodeLogprobs(row.logprobs));
  let next = 1;
  const places = parts.map((part) => {
    const place = next;
    next += part.length;
    return place;
  });
  const result = await pool.query<{ held: number }>(annotateSql, [
    step.stepId,
    step.claim,
    rows.map((row) => row.row),
    places,
    Buffer.concat(parts),
    parts.map((part) => part.length),
  ]);
  if (!result.rows[0]?.held) throw new FencedError(`the update of step ${step.stepId}`);
}
