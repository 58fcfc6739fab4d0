/**
 * Numbers of training requests: contiguous per model, each committed before it is sent, and given only to the job that holds the
 * claim. So a request that may have been sent is never numbered again for another one.
 */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";

/** Who sends training requests: the prepare job of a run, or the update job of a step. */
export type TrainerHolder =
  | { readonly kind: "prepare"; readonly runId: string; readonly claim: number }
  | { readonly kind: "update"; readonly runId: string; readonly stepId: string; readonly claim: number };

const holds = {
  prepare: "r.prepare_claim = $2 and r.prepare_worker_id is not null",
  update: `exists (select from steps s where s.id = $3 and s.run_id = r.id and s.claim = $2 and s.state = 'updating'
    and s.worker_id is not null)`,
};
const Seq = z.object({ seq: z.int() });

/** Next training request number of the run's model, committed before it is sent. @throws FencedError */
export const nextTrainerSeq = (pool: pg.Pool, holder: TrainerHolder): Promise<number> =>
  setSeq(pool, holder, "r.trainer_seq + 1", []);

/** A new model (or a backend that forgot) counts from there: sets the last used number. @throws FencedError */
export async function resetTrainerSeq(pool: pg.Pool, holder: TrainerHolder, lastSeq: number): Promise<void> {
  await setSeq(pool, holder, holder.kind === "update" ? "$4::bigint" : "$3::bigint", [lastSeq]);
}

async function setSeq(pool: pg.Pool, holder: TrainerHolder, value: string, more: number[]): Promise<number> {
  const { rows } = await pool.query(
    `update runs r set trainer_seq = ${value} where r.id = $1 and ${holds[holder.kind]} returning r.trainer_seq as seq`,
    [holder.runId, holder.claim, ...(holder.kind === "update" ? [holder.stepId] : []), ...more],
  );
  if (rows.length === 0) throw new FencedError(`the ${holder.kind} job of run ${holder.runId}`);
  return Seq.parse(rows[0]).seq;
}
