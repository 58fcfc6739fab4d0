/**
 * What an outside trainer takes back. The cursor is the seq of the event by which a rollout settled: events are in commit order
 * without gaps, so no rollout is missed or given twice, whatever settles while pages are read.
 */
import { NotFoundError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { readSettledRollouts, type StepRollout } from "../training/read-step-rollouts.ts";
import { type BatchState, batchStates } from "./batch-requests.ts";

export type FinishedRollout = StepRollout;

export interface FinishedPage {
  readonly batchId: string;
  readonly state: BatchState;
  readonly rollouts: readonly FinishedRollout[];
  /** Give it back as `cursor` for what settles later. */
  readonly cursor: number;
  /** Every rollout of the batch was returned by this page or an earlier one. */
  readonly done: boolean;
}

const Batch = z.object({
  state: z.enum(batchStates),
  step_id: z.string().nullable(),
  rollouts: z.int(),
  before: z.int(),
});
const settles = `e.run_id = $1 and e.type = 'rollout-status' and e.body ->> 'state' = 'settled'`;

/** Settled rollouts of a batch in the order they settled. @throws NotFoundError */
export async function readFinishedRollouts(
  pool: pg.Pool,
  batch: { readonly runId: string; readonly batchId: string; readonly cursor: number; readonly limit: number },
): Promise<FinishedPage> {
  const { runId, batchId, cursor, limit } = batch;
  const { rows } = await pool.query(
    `select b.state, b.step_id, (select count(*) from rollouts r where r.step_id = b.step_id) as rollouts,
       (select count(*) from events e join rollouts r on r.id = e.rollout_id
         where ${settles} and e.seq <= $3 and r.step_id = b.step_id) as before
     from batch_requests b where b.run_id = $1 and b.id = $2`,
    [runId, batchId, cursor],
  );
  if (rows.length === 0) throw new NotFoundError("batch", batchId);
  const known = Batch.parse(rows[0]);
  const settled = await pool.query<{ id: string; seq: number }>(
    `select r.id, e.seq from events e join rollouts r on r.id = e.rollout_id
     where ${settles} and e.seq > $3 and r.step_id = $2 order by e.seq limit $4`,
    [runId, known.step_id, cursor, limit],
  );
  const over = known.state === "done" || known.state === "cancelled";
  return {
    batchId,
    state: known.state,
    rollouts: await readSettledRollouts(
      pool,
      settled.rows.map((row) => row.id),
    ),
    cursor: settled.rows.at(-1)?.seq ?? cursor,
    done: (known.step_id !== null || over) && known.before + settled.rows.length === known.rollouts,
  };
}
