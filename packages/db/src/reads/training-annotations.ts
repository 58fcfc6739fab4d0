/**
 * What training did with the tokens of one attempt: mask reason, advantage and the trainer's logprob of each, from its
 * training rows. A token may lie in several rows (a broken prefix starts a new row with the same prompt): the row that was
 * made for it counts; in the others it is context (`other-row`).
 */
import { type MaskReason, maskReasons } from "@rolldeck/contracts/endings";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import type { TokenRange } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { decodeLogprobs } from "../hot/token-codec.ts";
import { pairs } from "./read-turns.ts";
import { type Queryable, readRows } from "./rows.ts";

const Row = z.object({
  ranges: z.array(z.int()),
  mask: z.array(z.int()),
  advantage: z.number(),
  sent: z.boolean(),
  trainerLogprobs: z.instanceof(Buffer).nullable(),
  stepState: z.enum(stepStates),
});

export interface AnnotatedRow {
  readonly ranges: readonly TokenRange[];
  /** Runs of equal fate in row order; reason null = trained. */
  readonly mask: readonly { readonly count: number; readonly reason: MaskReason | null }[];
  readonly advantage: number;
  readonly sent: boolean;
  /** One per token after the row's first; null before the update. */
  readonly trainerLogprobs: readonly (number | null)[] | null;
  readonly stepState: (typeof stepStates)[number];
}

export async function readAnnotatedRows(db: Queryable, rolloutId: string, attempt: number): Promise<AnnotatedRow[]> {
  const rows = await readRows(
    db,
    Row,
    `select t."ranges", coalesce(nullif(t."corrected_mask", '{}'), t."mask") as "mask", t."advantage", t."sent", t."trainer_logprobs" as "trainerLogprobs",
       s."state" as "stepState"
     from "training_rows" t join "steps" s on s."id" = t."step_id"
     where t."rollout_id" = $1 and t."attempt" = $2 order by t."row"`,
    [rolloutId, attempt],
  );
  return rows.map(({ ranges, mask, trainerLogprobs, ...rest }) => ({
    ...rest,
    ranges: pairs(ranges),
    mask: pairs(mask).map(({ start: count, end: reason }) => ({ count, reason: maskReasons[reason] ?? null })),
    trainerLogprobs: trainerLogprobs && decodeLogprobs(trainerLogprobs),
  }));
}

export interface TokenAnnotations {
  /** undefined: no training row holds the token. */
  readonly reasons: (MaskReason | null | undefined)[];
  readonly advantages: (number | null)[];
  readonly trainerLogprobs: (number | null)[];
}

/** Annotations of tokens [start, end). Pure. */
export function annotate(rows: readonly AnnotatedRow[], start: number, end: number): TokenAnnotations {
  const size = Math.max(0, end - start);
  const reasons = new Array<MaskReason | null | undefined>(size).fill(undefined);
  const advantages = new Array<number | null>(size).fill(null);
  const trainerLogprobs = new Array<number | null>(size).fill(null);
  for (const row of rows)
    for (const { token, position, reason } of rowTokens(row)) {
      const at = token - start;
      const trained = reason === null && row.sent;
      if (at < 0 || at >= size) continue;
      const known = reasons[at];
      if (known !== undefined && known !== "other-row" && !trained) continue;
      // A row that had no forward pass trained nothing: the group taught nothing.
      reasons[at] = reason ?? (row.sent ? null : "zero-variance");
      advantages[at] = trained ? row.advantage : null;
      trainerLogprobs[at] = row.trainerLogprobs?.[position - 1] ?? null;
    }
  return { reasons, advantages, trainerLogprobs };
}

/** Each token of a row: its place in the trajectory, in the row, and why it is masked. */
function* rowTokens(row: AnnotatedRow): Generator<{ token: number; position: number; reason: MaskReason | null }> {
  let position = 0;
  let run = 0;
  let left = row.mask[0]?.count ?? 0;
  for (const { start, end } of row.ranges)
    for (let token = start; token < end; token++) {
      while (left === 0 && run < row.mask.length - 1) left = row.mask[++run]?.count ?? 0;
      yield { token, position: position++, reason: row.mask[run]?.reason ?? null };
      left--;
    }
}
