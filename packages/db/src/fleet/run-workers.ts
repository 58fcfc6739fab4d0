/** The fleet's workers of one run, as those see them who use them. */
import { deviceKinds, FleetReason, fleetWorkerStates, workerRoles } from "@rolldeck/contracts/fleet";
import type pg from "pg";
import { z } from "zod";

const RunWorker = z.object({
  id: z.string(),
  role: z.enum(workerRoles),
  replica: z.int(),
  device: z.enum(deviceKinds),
  state: z.enum(fleetWorkerStates),
  wanted: z.boolean(),
  reason: FleetReason.nullable(),
  host: z.string().nullable(),
  /** Where it listens; null while nothing of it runs. */
  url: z.string().nullable(),
  /** The boot that answered last; null before it has. */
  bootId: z.string().nullable(),
});
export type RunWorker = z.infer<typeof RunWorker>;

/** Those that update first, then samplers by number. */
export async function readRunWorkers(pool: pg.Pool, runId: string): Promise<RunWorker[]> {
  const { rows } = await pool.query(
    `select id, role, replica, device, state, wanted, reason, host, url, boot_id as "bootId"
     from fleet_workers where run_id = $1 order by role = 'sampler', replica`,
    [runId],
  );
  return z.array(RunWorker).parse(rows);
}
