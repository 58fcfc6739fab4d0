/**
 * What an update trains, stored before it is sent, so that a lost update can be replayed exactly. Rows refer to the trajectory's
 * tokens by ranges; ids and sampling logprobs are read from the segments again.
 */

import { type MaskReason, maskReasons } from "@rolldeck/contracts/endings";
import { FencedError } from "@rolldeck/contracts/errors";
import { groupBy } from "@rolldeck/contracts/group-by";
import type { Segment, TokenRange } from "@rolldeck/contracts/segments";
import type pg from "pg";
import { z } from "zod";
import { readSegments } from "../hot/read-trajectory.ts";
import { decodeLogprobs } from "../hot/token-codec.ts";

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
/** What the trainer's own logprobs made of a row; every list has the row's length. */
export interface StoredCorrection {
  readonly mask: readonly MaskRun[];
  /** Factors of the tokens' advantages; 0 where the mask is not 1. */
  readonly tokenWeights: readonly number[];
  /** The trainer's, before the update: what the loss's ratio compares with. */
  readonly trainerLogprobs: readonly (number | null)[];
}
/** A stored row with its tokens, as an update sends it again; every list has the row's length. */
export interface StoredTrainingRow extends TrainingRow {
  readonly tokens: readonly number[];
  /** Sampling logprobs; null where not sampled. */
  readonly logprobs: readonly (number | null)[];
  /** Policy version that sampled each token; null where not sampled. */
  readonly versions: readonly (number | null)[];
  /** Null: the run corrects nothing, or the update has not come to it. */
  readonly correction: StoredCorrection | null;
  /** The trainer's, before the update, corrected or not; null: the update has not come to it. */
  readonly trainerLogprobs: readonly (number | null)[] | null;
  readonly refLogprobs: readonly (number | null)[] | null;
}
export interface StepRows {
  readonly stepId: string;
  readonly step: number;
  readonly rows: StoredTrainingRow[];
}

/** As stored: count, reason … flat. */
export const flatMask = (runs: readonly MaskRun[]): number[] =>
  runs.flatMap(({ count, reason }) => [count, reason ? maskReasons.indexOf(reason) : -1]);

export const heldStep = `held as materialized (
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
    rows.map((row) => flat(flatMask(row.mask))),
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
  correctedMask: z.array(z.int()),
  tokenWeights: z.instanceof(Buffer).nullable(),
  trainerLogprobs: z.instanceof(Buffer).nullable(),
  refLogprobs: z.instanceof(Buffer).nullable(),
});

const columns = `t.step_id as "stepId", s.step, t.row, t.rollout_id as "rolloutId", t.attempt, t.ranges, t.mask, t.advantage, t.scale, t.sent,
  t.corrected_mask as "correctedMask", t.token_weights as "tokenWeights",
  t.trainer_logprobs as "trainerLogprobs", t.ref_logprobs as "refLogprobs"`;

/** Rows of the done and updating train steps fromStep…toStep, in order: what a replay sends. */
export async function readTrainingRows(
  pool: pg.Pool,
  runId: string,
  fromStep: number,
  toStep: number,
): Promise<StepRows[]> {
  const { rows } = await pool.query(
    `select ${columns}
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

/** Rows fromRow…toRow of one step, in order. */
export async function readRowsOfStep(
  pool: pg.Pool,
  stepId: string,
  fromRow: number,
  toRow: number,
): Promise<StoredTrainingRow[]> {
  const { rows } = await pool.query(
    `select ${columns} from steps s join training_rows t on t.step_id = s.id
     where s.id = $1 and t.row between $2 and $3 order by t.row`,
    [stepId, fromRow, toRow],
  );
  return withTokens(pool, z.array(Row).parse(rows));
}

async function withTokens(pool: pg.Pool, rows: readonly z.infer<typeof Row>[]): Promise<StoredTrainingRow[]> {
  const attempts = [...new Map(rows.map((row) => [row.rolloutId, row])).values()];
  const segments = await readSegments(pool, attempts);
  const layout = new Map(attempts.map(({ rolloutId }, place) => [rolloutId, tokensOf(segments[place] ?? [])]));
  return rows.map((row) => {
    const { rolloutId, attempt, advantage, scale, sent } = row;
    const ranges = pairs(row.ranges).map(([start, end]) => ({ start, end }));
    const tokens = layout.get(rolloutId) ?? [];
    const own = ranges.flatMap(({ start, end }) => tokens.slice(start, end));
    return {
      row: row.row,
      rolloutId,
      attempt,
      advantage,
      scale,
      sent,
      ranges,
      mask: maskRuns(row.mask),
      tokens: own.map((token) => token.id),
      logprobs: own.map((token) => token.logprob),
      versions: own.map((token) => token.version),
      correction: correctionOf(row),
      trainerLogprobs: row.trainerLogprobs && afterFirst(row.trainerLogprobs),
      refLogprobs: row.refLogprobs && afterFirst(row.refLogprobs),
    };
  });
}

function correctionOf(row: z.infer<typeof Row>): StoredCorrection | null {
  const { correctedMask, tokenWeights, trainerLogprobs } = row;
  if (correctedMask.length === 0 || tokenWeights === null || trainerLogprobs === null) return null;
  return {
    mask: maskRuns(correctedMask),
    tokenWeights: afterFirst(tokenWeights).map((weight) => weight ?? 0),
    trainerLogprobs: afterFirst(trainerLogprobs),
  };
}

/** Stored from the second token on: nothing comes before the first. */
const afterFirst = (bytes: Buffer): (number | null)[] => [null, ...decodeLogprobs(bytes)];

const tokensOf = (segments: readonly Segment[]): { id: number; logprob: number | null; version: number | null }[] =>
  segments.flatMap(({ tokens, logprobs, policyVersion: version }) =>
    tokens.map((id, place) => ({ id, logprob: logprobs?.[place] ?? null, version })),
  );

/** The flat form, as runs. */
export const maskRuns = (flat: readonly number[]): MaskRun[] =>
  pairs(flat).map(([count, reason]) => ({ count, reason: maskReasons[reason] ?? null }));

const pairs = (flat: readonly number[]): [number, number][] =>
  flat.flatMap((first, place) => (place % 2 === 0 ? [[first, flat[place + 1] ?? 0]] : []));
