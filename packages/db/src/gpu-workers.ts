/** What is known of the processes that host inference and the update. */
import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import type { EngineLoad as PlannerEngineLoad } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { z } from "zod";
import { raiseWake } from "./hot/event-log.ts";

export const gpuWorkerStates = ["installing", "starting", "ready", "lost", "absent", "failed"] as const;
export type GpuWorkerState = (typeof gpuWorkerStates)[number];
const GpuWorkerBoot = z.object({
  message: z.string(),
  done: z.number().nullable(),
  total: z.number().nullable(),
  unit: z.string().nullable(),
  elapsedMs: z.number().nullable(),
});
export type GpuWorkerBoot = z.infer<typeof GpuWorkerBoot>;

/** Unit of `done` in the boot of a server that does not answer. */
export const triesUnit = "tries";

export interface GpuWorkerReport {
  /**
   * `supervisedGpuWorker`, the address of a backend that someone else runs, `server:` and its name in the operator's list, or `fleet:` and
   * the id of the run that has workers of its own.
   */
  readonly name: string;
  readonly url: string | null;
  readonly state: GpuWorkerState;
  readonly boot: GpuWorkerBoot | null;
  readonly device: string | null;
  readonly bootId: string | null;
}
/** Name of the worker that `npm start` supervises. */
export const supervisedGpuWorker = "gpu-worker";

type Where = Pick<BackendConfig, "endpoint" | "server" | "fleet">;
/** Whose model. */
export interface ModelOf<Backend extends Where = Where> {
  readonly runId: string;
  readonly config: { readonly backend: Backend };
}

/** The one that `npm start` supervises on this machine is meant. */
export const isSupervised = ({ endpoint, server, fleet }: Where): boolean =>
  endpoint === null && server === null && fleet === null;

/** Row of gpu_workers that a run's model lives on. */
export function gpuWorkerName({ runId, config: { backend } }: ModelOf): string {
  if (backend.fleet !== null) return `fleet:${runId}`;
  return backend.server === null ? (backend.endpoint ?? supervisedGpuWorker) : `server:${backend.server}`;
}
/** The same of a row of runs in SQL. @param run its alias */
export const gpuWorkerNameSql = (run: string): string =>
  `case when jsonb_typeof(${run}.config -> 'backend' -> 'fleet') = 'object' then 'fleet:' || ${run}.id
   else coalesce('server:' || (${run}.config -> 'backend' ->> 'server'), ${run}.config -> 'backend' ->> 'endpoint', '${supervisedGpuWorker}') end`;

const reportSql = `
with before as (select state, boot_id from gpu_workers where name = $1),
changed as materialized (
  select not exists (select from before where state = $3 and boot_id is not distinct from $6) as yes
),
written as (
  insert into gpu_workers (name, url, state, boot, device, boot_id, last_seen_at)
  values ($1, $2, $3, $4, $5, $6, case when $3 = 'ready' then now() end)
  on conflict (name) do update set url = excluded.url, state = excluded.state, boot = excluded.boot,
    device = excluded.device, boot_id = excluded.boot_id, updated_at = now(),
    last_seen_at = coalesce(excluded.last_seen_at, gpu_workers.last_seen_at)
),
run_lock as materialized (
  select r.id from runs r where (select yes from changed) and r.status in ('queued', 'preparing', 'running', 'pausing')
    and ${gpuWorkerNameSql("r")} = $1
  order by r.id for no key update
),
woken as (update runs r set ${raiseWake("true")} from run_lock l where r.id = l.id)
select yes as changed from changed`;

/** Writes what is known of a GPU worker now; wakes live runs when its state or boot id changed. */
export async function reportGpuWorker(pool: pg.Pool, report: GpuWorkerReport): Promise<{ changed: boolean }> {
  const { name, url, state, boot, device, bootId } = report;
  const { rows } = await pool.query<{ changed: boolean }>(reportSql, [name, url, state, boot, device, bootId]);
  return { changed: rows[0]?.changed ?? false };
}

/** Several processes may read one engine: their readings are kept no closer together than this. */
const loadEveryMs = 1_500;

/** What an engine bears, as it is kept; the type is the planner's. */
export const EngineLoad = z.object({
  at: z.number(),
  cacheUse: z.number().min(0),
  running: z.int().min(0),
  waiting: z.int().min(0),
}) satisfies z.ZodType<PlannerEngineLoad>;

/** Keeps the newest reading; one that is older, or hardly newer, changes nothing. Wakes nobody: plans read it as they come. */
export async function reportEngineLoad(pool: pg.Pool, name: string, load: PlannerEngineLoad): Promise<void> {
  await pool.query(
    `update gpu_workers set load = $2 where name = $1 and coalesce((load ->> 'at')::float8, 0) <= $3::float8 - $4`,
    [name, JSON.stringify(EngineLoad.parse(load)), load.at, loadEveryMs],
  );
}

const Row = z.object({
  name: z.string(),
  url: z.string().nullable(),
  state: z.enum(gpuWorkerStates),
  boot: GpuWorkerBoot.nullable(),
  device: z.string().nullable(),
  bootId: z.string().nullable(),
  lastSeenAtMs: z.number().nullable(),
  /** Milliseconds since it was written. */
  ageMs: z.number(),
});

export async function readGpuWorker(
  pool: pg.Pool,
  name: string,
): Promise<(GpuWorkerReport & { readonly lastSeenAtMs: number | null; readonly ageMs: number }) | null> {
  const { rows } = await pool.query(
    `select name, url, state, boot, device, boot_id as "bootId",
       (extract(epoch from last_seen_at) * 1000)::float8 as "lastSeenAtMs",
       (extract(epoch from now() - updated_at) * 1000)::float8 as "ageMs" from gpu_workers where name = $1`,
    [name],
  );
  return rows.length === 0 ? null : Row.parse(rows[0]);
}

/** Rows of a fleet's workers whose run is over and that hold nothing of it any more. */
export async function dropEndedFleetRows(pool: pg.Pool): Promise<void> {
  await pool.query(
    `delete from gpu_workers g where g.name like 'fleet:%' and not exists (
       select from runs r where 'fleet:' || r.id = g.name and (r.status not in ('stopped', 'completed', 'failed')
         or r.model_boot_id is not null and exists (select from fleet_workers w where w.run_id = r.id and w.role <> 'reader' and w.wanted)))`,
  );
}
