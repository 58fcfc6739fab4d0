/** What is alive: workers, GPU workers, pools. A worker is alive when it was seen within the length of a lease. */
import { SystemState } from "@rolldeck/contracts/api/system";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { z } from "zod";
import { keptRoom } from "../hot/kept-sandboxes.ts";
import type { PrismaClient } from "../prisma.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";

export type SystemRows = Pick<SystemState, "now" | "workers" | "gpuWorkers" | "pools"> & {
  /** Folder of the database server when it may be seen: tells an embedded server from an external one. */
  readonly databaseFolder: string | null;
};

const dayMs = 86_400_000;
const Server = z.object({ now: z.date(), folder: z.string().nullable() });
const GpuState = SystemState.shape.gpuWorkers.element.shape.state;
const Boot = z.object({
  message: z.string(),
  done: z.number().nullish(),
  total: z.number().nullish(),
  unit: z.string().nullish(),
  elapsedMs: z.number().nullish(),
});

export async function readSystem(db: Queryable, prisma: PrismaClient): Promise<SystemRows> {
  const server = await readRow(
    db,
    Server,
    `select now(), (select "setting" from pg_settings where "name" = 'data_directory') as "folder"`,
  );
  const now = server?.now ?? new Date(0);
  return {
    now: now.toISOString(),
    databaseFolder: server?.folder ?? null,
    workers: await readWorkers(prisma, now),
    gpuWorkers: await readGpuWorkers(prisma),
    pools: await readRows(
      db,
      SystemState.shape.pools.element,
      `select "resource", "size", "used", case when "resource" = 'sandbox' then ${keptRoom} else 0 end as "kept"
       from "pools" order by "resource"`,
    ),
  };
}

/** Workers not seen for a day are history, not state. */
async function readWorkers(prisma: PrismaClient, now: Date): Promise<SystemState["workers"]> {
  const rows = await prisma.worker.findMany({
    where: { lastSeenAt: { gt: new Date(now.getTime() - dayMs) } },
    orderBy: { lastSeenAt: "desc" },
    take: 1000,
  });
  return rows.map(({ id, lastSeenAt, stages }) => ({
    workerId: id,
    lastSeenAt: lastSeenAt.toISOString(),
    alive: now.getTime() - lastSeenAt.getTime() < leaseMs,
    stages,
  }));
}

async function readGpuWorkers(prisma: PrismaClient): Promise<SystemState["gpuWorkers"]> {
  const rows = await prisma.gpuWorker.findMany({ orderBy: { name: "asc" } });
  return rows.map(({ name, state, boot, device, bootId, lastSeenAt }) => {
    const progress = boot === null ? null : Boot.parse(boot);
    return {
      name,
      state: GpuState.parse(state),
      message: progress?.message ?? "",
      done: progress?.done ?? null,
      total: progress?.total ?? null,
      unit: progress?.unit ?? null,
      elapsedMs: progress?.elapsedMs ?? null,
      device,
      bootId,
      lastSeenAt: lastSeenAt?.toISOString() ?? null,
    };
  });
}
