/** Pools, who holds and wants how much of each, and what each run was granted. */
import { type Demand, type Resource, type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { z } from "zod";
import { groupBy } from "../group-by.ts";
import { raiseWake } from "../hot/event-log.ts";
import { poolRoom } from "../hot/kept-sandboxes.ts";

export interface Pool {
  readonly resource: Resource;
  /** Leases there may be: kept sandboxes take room of theirs. */
  readonly size: number;
  readonly used: number;
}
export interface ResourceDemands {
  readonly pool: Pool;
  /** One per live run. */
  readonly demands: readonly Demand[];
}

const PoolRow = z.object({ resource: z.enum(resources), size: z.int(), used: z.int() });

export async function readPools(pool: pg.Pool): Promise<Pool[]> {
  const { rows } = await pool.query(`select resource, ${poolRoom("p")} as size, used from pools p order by resource`);
  return z.array(PoolRow).parse(rows);
}

/**
 * Sizes as this server's operator sets them. A pool never gets smaller than what is held now; it shrinks as leases come back
 * and this is called again.
 */
export async function setPoolSizes(pool: pg.Pool, sizes: Readonly<Partial<Record<Resource, number>>>): Promise<void> {
  const wanted = Object.entries(sizes);
  await pool.query(
    `update pools p set size = greatest(w.size, p.used) from unnest($1::text[], $2::int[]) as w (resource, size)
     where p.resource = w.resource`,
    [wanted.map(([resource]) => resource), wanted.map(([, size]) => size)],
  );
}

/** Per live run: leases held by resource, unsettled rollouts by stage that wait for a slot, and what bounds them. */
const demandSql = `
with live as (
  select id, config -> 'dispatcher' -> 'bounds' as bounds, status from runs
  where status = 'running' or id in (select run_id from pool_leases)
),
held as (
  select run_id, json_object_agg(resource, n) as held from
    (select run_id, resource, count(*) as n from pool_leases group by 1, 2) l group by run_id
),
waiting as (
  select r.run_id, json_object_agg(stage, n) as waiting, min(oldest) as oldest from (
    select r.run_id, r.stage, count(*) as n, min(ready_at) as oldest from rollouts r join live l on l.id = r.run_id
    where r.state = 'waiting' and l.status = 'running' group by 1, 2
  ) r group by r.run_id
),
tasks as (
  select t.run_id, array_agg(t.task) as tasks
  from (select l.id as run_id, jsonb_array_elements(u.config -> 'taskSets') ->> 'name' as task from live l join runs u using (id)) t
  group by t.run_id
)
select l.id, l.bounds, coalesce(h.held, '{}') as held, coalesce(w.waiting, '{}') as waiting, t.tasks,
  (extract(epoch from w.oldest) * 1000)::float8 as waiting_since
from live l left join held h on h.run_id = l.id left join waiting w on w.run_id = l.id left join tasks t on t.run_id = l.id
order by l.id`;

const DemandRow = z.object({
  id: z.string(),
  bounds: z.object({ init: z.int(), run: z.int(), evaluate: z.int() }),
  held: z.partialRecord(z.enum(resources), z.int()),
  waiting: z.object({ init: z.int().default(0), run: z.int().default(0), evaluate: z.int().default(0) }),
  tasks: z.array(z.string()).nullable(),
  waiting_since: z.number().nullable(),
});
type DemandRow = z.infer<typeof DemandRow>;

/**
 * What every live run holds and could use of each resource now.
 * @param needsSandbox whether a task's rollouts take sandboxes; absent: all do
 */
export async function readDemands(
  pool: pg.Pool,
  needsSandbox: (task: string) => boolean = () => true,
): Promise<ResourceDemands[]> {
  const pools = await readPools(pool);
  const { rows } = await pool.query({ name: "demands", text: demandSql });
  const runs = z.array(DemandRow).parse(rows);
  return pools.map((one) => ({
    pool: one,
    demands: runs.map((run): Demand => {
      const held = run.held[one.resource] ?? 0;
      const sandboxed = (run.tasks ?? []).some(needsSandbox);
      return {
        runId: run.id,
        weight: 1,
        held,
        wanted: Math.max(held, wantedOf(one.resource, run, held, sandboxed)),
        waitingSince: run.waiting_since,
      };
    }),
  }));
}

/** Upper bound over all dispatchers: what a policy leaves unused goes back at the next plan. */
function wantedOf(resource: Resource, { waiting, bounds }: DemandRow, held: number, sandboxed: boolean): number {
  switch (resource) {
    case "initSlot":
      return Math.min(held + waiting.init, bounds.init);
    case "runSlot":
      // A policy that holds run slots from init on asks for them there.
      return held + waiting.init + waiting.run;
    case "gradeSlot":
      return Math.min(held + waiting.evaluate, bounds.evaluate);
    case "sandbox":
      return sandboxed ? held + waiting.init + waiting.run + waiting.evaluate : held;
    case "gpu":
      return held;
  }
}

const grantSql = `
with granted as materialized (
  select * from unnest($1::text[], $2::text[], $3::int[]) as g (resource, run_id, granted)
),
written as (
  insert into pool_grants as p (resource, run_id, granted)
  select g.resource, g.run_id, g.granted from granted g join runs r on r.id = g.run_id order by g.resource, g.run_id
  on conflict (resource, run_id) do update set granted = excluded.granted where p.granted <> excluded.granted
  returning resource, run_id
),
raised as (
  select distinct g.run_id from granted g join written w using (resource, run_id)
  left join pool_grants old on old.resource = g.resource and old.run_id = g.run_id
  where g.granted > coalesce(old.granted, 0)
),
run_lock as materialized (
  select id from runs where id in (select run_id from raised) order by id for no key update
),
dropped as (
  delete from pool_grants p where p.run_id in (select id from runs where status in ('stopped', 'completed', 'failed'))
    and not exists (select from granted g where g.run_id = p.run_id)
)
update runs r set ${raiseWake("true")} from run_lock l where r.id = l.id`;

/** Stores grants and wakes the runs whose grant rose. */
export async function writeGrants(
  pool: pg.Pool,
  grants: readonly { readonly resource: Resource; readonly granted: ReadonlyMap<string, number> }[],
): Promise<void> {
  const rows = grants.flatMap(({ resource, granted }) =>
    [...granted].map(([runId, count]) => ({ resource, runId, count })),
  );
  if (rows.length === 0) return;
  await pool.query({
    name: "write-grants",
    text: grantSql,
    values: [rows.map((row) => row.resource), rows.map((row) => row.runId), rows.map((row) => row.count)],
  });
}

/** Leases the run may hold in all; a resource without a grant row counts as what the run holds and the pool has free. */
export async function readGrants(pool: pg.Pool, runId: string): Promise<ResourceCounts> {
  const { rows } = await pool.query(
    `select p.resource, coalesce(g.granted,
       ${poolRoom("p")} - p.used + (select count(*) from pool_leases l where l.resource = p.resource and l.run_id = $1))::int as granted
     from pools p left join pool_grants g on g.resource = p.resource and g.run_id = $1`,
    [runId],
  );
  const granted = groupBy(
    z.array(z.object({ resource: z.enum(resources), granted: z.int() })).parse(rows),
    (row) => row.resource,
  );
  const of = (resource: Resource): number => granted.get(resource)?.[0]?.granted ?? 0;
  return {
    sandbox: of("sandbox"),
    initSlot: of("initSlot"),
    runSlot: of("runSlot"),
    gradeSlot: of("gradeSlot"),
    gpu: of("gpu"),
  };
}

/** Pools whose `used` is not the number of their leases: empty when the books are right. */
export async function poolLedger(pool: pg.Pool): Promise<{ resource: Resource; used: number; leases: number }[]> {
  const { rows } = await pool.query(
    `select * from (select p.resource, p.used, (select count(*) from pool_leases l where l.resource = p.resource)::int as leases
       from pools p) b where used <> leases order by resource`,
  );
  return z.array(z.object({ resource: z.enum(resources), used: z.int(), leases: z.int() })).parse(rows);
}
