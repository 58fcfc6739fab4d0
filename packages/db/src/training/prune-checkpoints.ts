/** Checkpoints beyond what a run keeps. Their rows go before their files, so that nothing loads what is being deleted. */
import type pg from "pg";
import { z } from "zod";

const Pruned = z.array(z.object({ version: z.int(), name: z.string(), path: z.string() }));

/**
 * Takes all but the newest `keep` out of use and returns them. A warm start (version 0) is shared and stays, and so does what
 * another run began with.
 */
export async function pruneCheckpoints(pool: pg.Pool, runId: string, keep: number): Promise<z.infer<typeof Pruned>> {
  const { rows } = await pool.query(
    `update checkpoints set state = 'pruned'
     where run_id = $1 and state = 'complete' and version > 0 and version not in (
       select version from checkpoints where run_id = $1 and state = 'complete' and version > 0
       order by version desc limit $2)
       and not exists (select from checkpoints other
         where other.path = checkpoints.path and other.run_id <> $1 and other.state = 'complete')
       -- Nor one that a launched run names and has not begun with yet.
       and not exists (select from runs later
         where later.ended_at is null and later.config #>> '{model,startFrom,run}' = $1
           and (later.config #>> '{model,startFrom,version}')::int = checkpoints.version)
     returning version, name, path`,
    [runId, keep],
  );
  return Pruned.parse(rows);
}
