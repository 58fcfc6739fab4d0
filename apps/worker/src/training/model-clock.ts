/** How many updates the rows say the model has had, and which prepare made it what it is. */
import type { Pool } from "@rolldeck/db/connect";
import { z } from "zod";

export interface ModelClock {
  /** Train steps that made an update: what the model's own step count must be. A step may end without one. */
  readonly updatesDone: number;
  readonly prepareClaim: number;
}

const Row = z.object({ updates_done: z.int(), prepare_claim: z.int() });

export async function readModelClock(pool: Pool, runId: string): Promise<ModelClock> {
  const { rows } = await pool.query(
    `select r.prepare_claim,
            (select count(*)::int from steps s
              where s.run_id = r.id and s.purpose = 'train' and s.source = 'planned' and s.state = 'done') as updates_done
       from runs r where r.id = $1`,
    [runId],
  );
  const row = Row.parse(rows[0]);
  return { updatesDone: row.updates_done, prepareClaim: row.prepare_claim };
}
