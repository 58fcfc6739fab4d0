/** A fork from "the newest" learns which of its parent's versions that is when it begins. */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { heldRun, type TrainerHolder } from "./model-holder.ts";

/** Of a run that is no fork it changes nothing. @throws FencedError when the holder's claim is lost */
export async function setParentVersion(pool: pg.Pool, holder: TrainerHolder, version: number): Promise<void> {
  const held = heldRun(holder);
  const { rowCount } = await pool.query(
    `with ${held.sql}
     update runs r set parent_version = case r.parent_relation when 'fork' then $4::int else r.parent_version end
     from held h where r.id = h.run_id`,
    [...held.values, version],
  );
  if (rowCount !== 1) throw new FencedError(`the model of run ${holder.runId}`);
}
