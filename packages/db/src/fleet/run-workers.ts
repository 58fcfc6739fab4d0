/** The fleet's workers of one run, as those see them who use them. */
import { RunWorker, type WorkerRole } from "@rolldeck/contracts/fleet";
import type pg from "pg";
import { z } from "zod";

/** What a run works with. */
const ownRoles: readonly WorkerRole[] = ["colocated", "trainer", "sampler"];
/** What reads the files of a run: its reader, or the worker that writes them. */
const fileRoles: readonly WorkerRole[] = ["reader", "colocated", "trainer"];

/** Those that update first, then samplers by number. */
export const readRunWorkers = (pool: pg.Pool, runId: string): Promise<RunWorker[]> => readRoles(pool, runId, ownRoles);
/** The one that updates first, then the reader. */
export const readFileWorkers = (pool: pg.Pool, runId: string): Promise<RunWorker[]> =>
  readRoles(pool, runId, fileRoles);

async function readRoles(pool: pg.Pool, runId: string, roles: readonly WorkerRole[]): Promise<RunWorker[]> {
  const { rows } = await pool.query(
    `select id, role, replica, device, state, wanted, reason, host, url, boot_id as "bootId"
     from fleet_workers where run_id = $1 and role = any($2) order by role in ('sampler', 'reader'), replica`,
    [runId, roles],
  );
  return z.array(RunWorker).parse(rows);
}
