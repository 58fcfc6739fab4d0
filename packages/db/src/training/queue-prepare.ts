/** The planner asks for the run's model: the lease stands for the job until a worker claims it. */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";

/** @returns false when the run has moved or a prepare job is under way */
export async function queuePrepare(pool: pg.Pool, runId: string, status: RunStatus): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update runs set prepare_claim = prepare_claim + 1, prepare_worker_id = null,
       prepare_lease_until = now() + $3::int * interval '1 millisecond'
     where id = $1 and status = $2 and (prepare_lease_until is null or prepare_lease_until <= now())`,
    [runId, status, leaseMs],
  );
  return rowCount === 1;
}
