/**
 * Runs whose files on the fleet's hosts nobody can want: they are over, none of their workers is left, and none of their versions has a
 * complete checkpoint. Where one has, its files stay: they are the trained weights, and there is no other copy.
 */
import { endedFleetWorkerStates } from "@rolldeck/contracts/fleet";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { ForgettableRun } from "@rolldeck/contracts/ports/fleet-store";
import type pg from "pg";
import { z } from "zod";

const atOnce = 8;
const Row = z.object({ runId: z.string(), workerIds: z.array(z.string()) });

export async function forgettableRuns(pool: pg.Pool): Promise<ForgettableRun[]> {
  const { rows } = await pool.query(
    `select w.run_id as "runId", array_agg(w.id order by w.id) as "workerIds"
     from fleet_workers w join runs r on r.id = w.run_id
     where not w.files_removed and r.status = any($1)
       and not exists (select from checkpoints c where c.run_id = r.id and c.version > 0 and c.state = 'complete')
     group by w.run_id having bool_and(not w.wanted and w.state = any($2)) order by w.run_id limit ${atOnce}`,
    [endedRunStatuses, endedFleetWorkerStates],
  );
  return z.array(Row).parse(rows);
}

/** Its files are gone from every host. */
export async function runForgotten(pool: pg.Pool, runId: string): Promise<void> {
  await pool.query(
    `with marked as (update fleet_workers set files_removed = true where run_id = $1 and not wanted returning run_id)
     update checkpoints c set state = 'removed' from (select distinct run_id from marked) m where c.run_id = m.run_id`,
    [runId],
  );
}
