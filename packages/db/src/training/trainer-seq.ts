/**
 * Numbers of training requests: contiguous per model, each committed before it is sent, and given only to the job that holds the
 * claim. So a request that may have been sent is never numbered again for another one.
 */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { heldRun, type TrainerHolder } from "./model-holder.ts";

const Seq = z.object({ seq: z.int() });

/** Next training request number of the run's model, committed before it is sent. @throws FencedError */
export const nextTrainerSeq = (pool: pg.Pool, holder: TrainerHolder): Promise<number> =>
  setSeq(pool, holder, "r.trainer_seq + 1", []);

/** A new model (or a backend that forgot) counts from there: sets the last used number. @throws FencedError */
export async function resetTrainerSeq(pool: pg.Pool, holder: TrainerHolder, lastSeq: number): Promise<void> {
  await setSeq(pool, holder, "$4::bigint", [lastSeq]);
}

async function setSeq(pool: pg.Pool, holder: TrainerHolder, value: string, more: number[]): Promise<number> {
  const held = heldRun(holder);
  const { rows } = await pool.query(
    `with ${held.sql} update runs r set trainer_seq = ${value} from held h where r.id = h.run_id returning r.trainer_seq as seq`,
    [...held.values, ...more],
  );
  if (rows.length === 0) throw new FencedError(`the ${holder.kind} job of run ${holder.runId}`);
  return Seq.parse(rows[0]).seq;
}
