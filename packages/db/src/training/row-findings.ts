/**
 * What an update learns of its rows, so that whoever repeats or replays it sends the same numbers. Each fact of a row is written once, by
 * whichever holder of the update came first; a later one changes nothing.
 */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { encodeLogprobs } from "../hot/token-codec.ts";
import { flatMask, heldStep, type MaskRun } from "./training-rows.ts";

/** Absent: not known, or written before. Every list has the row's length; nothing is kept for its first token. */
export interface RowFindings {
  readonly row: number;
  /** The mask after what the trainer's logprobs left out. */
  readonly mask?: readonly MaskRun[];
  readonly tokenWeights?: readonly number[];
  /** The trainer's, before the update. */
  readonly trainerLogprobs?: readonly (number | null)[];
  readonly refLogprobs?: readonly (number | null)[];
}

const sql = `
with ${heldStep},
put as (
  update training_rows t set
    corrected_mask = case when t.corrected_mask = '{}' then coalesce(a.mask::int[], '{}') else t.corrected_mask end,
    token_weights = coalesce(t.token_weights, decode(a.weights, 'hex')),
    trainer_logprobs = coalesce(t.trainer_logprobs, decode(a.trainer, 'hex')),
    ref_logprobs = coalesce(t.ref_logprobs, decode(a.reference, 'hex'))
  from held h, unnest($3::int[], $4::text[], $5::text[], $6::text[], $7::text[]) as a (row, mask, weights, trainer, reference)
  where t.step_id = h.id and t.row = a.row
  returning 1
)
select (select count(*) from held)::int as held, (select count(*) from put)::int as written`;

/** @throws FencedError when the claim is lost */
export async function writeRowFindings(
  pool: pg.Pool,
  step: { readonly stepId: string; readonly claim: number },
  rows: readonly RowFindings[],
): Promise<void> {
  const bytes = (list: readonly (number | null)[] | undefined): string | null =>
    list === undefined ? null : encodeLogprobs(list.slice(1)).toString("hex");
  const result = await pool.query<{ held: number }>(sql, [
    step.stepId,
    step.claim,
    rows.map(({ row }) => row),
    rows.map(({ mask }) => (mask === undefined ? null : `{${flatMask(mask).join(",")}}`)),
    rows.map(({ tokenWeights }) => bytes(tokenWeights)),
    rows.map(({ trainerLogprobs }) => bytes(trainerLogprobs)),
    rows.map(({ refLogprobs }) => bytes(refLogprobs)),
  ]);
  if (!result.rows[0]?.held) throw new FencedError(`the update of step ${step.stepId}`);
}
