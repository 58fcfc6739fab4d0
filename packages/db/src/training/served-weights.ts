/** Weights that a trainer stored for samplers which are other servers: one set of files for each version that served. */
import type pg from "pg";
import { z } from "zod";

/** A turn under way may name the version before the one that serves, and a sampler that starts again loads it anew. */
const keptVersions = 4;

const Served = z.object({ version: z.int(), path: z.string() });
export type ServedWeights = z.infer<typeof Served>;

/** Those that no turn names any more. */
export async function oldServedWeights(pool: pg.Pool, runId: string): Promise<ServedWeights[]> {
  const { rows } = await pool.query(
    `select version, sampling_session_id as path from policy_versions
     where run_id = $1 and state = 'retired' and sampling_session_id like 'tinker://%'
       and version <= (select max(version) from policy_versions where run_id = $1) - ${keptVersions}
     order by version limit 100`,
    [runId],
  );
  return z.array(Served).parse(rows);
}

/** Its files are gone. */
export async function forgetServedWeights(
  pool: pg.Pool,
  runId: string,
  { version, path }: ServedWeights,
): Promise<void> {
  await pool.query(
    `update policy_versions set sampling_session_id = null where run_id = $1 and version = $2 and sampling_session_id = $3`,
    [runId, version, path],
  );
}
