/** What is alive: workers, GPU workers, pools. A worker is alive when it was seen within three of its heartbeats. */
import { SystemState } from "@rolldeck/contracts/api/system";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

export type SystemRows = Pick<SystemState, "now" | "workers" | "gpuWorkers" | "pools"> & {
  /** Folder of the database server when it may be seen: tells an embedded server from an external one. */
  readonly databaseFolder: string | null;
};

const GpuRow = SystemState.shape.gpuWorkers.element
  .pick({ name: true, state: true, device: true, bootId: true, lastSeenAt: true })
  .extend({
    boot: z
      .object({
        message: z.string(),
        done: z.number().nullish(),
        total: z.number().nullish(),
        unit: z.string().nullish(),
        elapsedMs: z.number().nullish(),
      })
      .nullable(),
  });

/** Workers not seen for a day are history, not state. */
export async function readSystem(db: Queryable): Promise<SystemRows> {
  const server = await readRow(
    db,
    z.object({ now: z.string(), folder: z.string().nullable() }),
    `select ${iso("now()")} as "now", (select "setting" from pg_settings where "name" = 'data_directory') as "folder"`,
  );
  const gpuWorkers = await readRows(
    db,
    GpuRow,
    `select "name", "state", "boot", "device", "boot_id" as "bootId", ${iso('"last_seen_at"')} as "lastSeenAt"
     from "gpu_workers" order by "name"`,
  );
  return {
    now: server?.now ?? new Date(0).toISOString(),
    databaseFolder: server?.folder ?? null,
    workers: await readRows(
      db,
      SystemState.shape.workers.element,
      `select "id" as "workerId", ${iso('"last_seen_at"')} as "lastSeenAt", "stages",
         "last_seen_at" > now() - $1::float8 * interval '1 ms' as "alive"
       from "workers" where "last_seen_at" > now() - interval '1 day' order by "last_seen_at" desc limit 1000`,
      [leaseMs],
    ),
    gpuWorkers: gpuWorkers.map(({ boot, ...row }) => ({
      ...row,
      message: boot?.message ?? "",
      done: boot?.done ?? null,
      total: boot?.total ?? null,
      unit: boot?.unit ?? null,
      elapsedMs: boot?.elapsedMs ?? null,
    })),
    pools: await readRows(db, SystemState.shape.pools.element, `select * from "pools" order by "resource"`),
  };
}
