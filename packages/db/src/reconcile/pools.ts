/** Pools, who holds and wants how much of each, and what each run was granted. */

import { groupBy } from "@rolldeck/contracts/group-by";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import { type Demand, type Resource, type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { z } from "zod";
import { raiseWake } from "../hot/event-log.ts";
import { poolRoom } from "../hot/kept-sandboxes.ts";

export interface Pool {
  readonly resource: Resource;
  /** Leases there may be: kept sandboxes take room of theirs. */
  readonly size: number;
  readonly used: number;
  /** Leases that only evaluation rollouts may take. */
  readonly evaluationReserve: number;
}
export interface ResourceDemands {
  readonly pool: Pool;
  /** One per live run. */
  readonly demands: readonly Demand[];
  /** Leases that all runs of a project may hold together; a project that is not named has no limit. */
  readonly quotas: ReadonlyMap<string, number>;
}

const PoolRow = z.object({
  resource: z.enum(resources),
  size: z.int(),
  used: z.int(),
  evaluationReserve: z.int(),
  quotas: z.record(z.string(), z.int()),
});

const poolSql = `
select p.resource, ${poolRoom("p")} as size, p.used, p.evaluation_reserve as "evaluationReserve",
  (select coalesce(json_object_agg(q.project, q.quota), '{}') from project_quotas q where q.resource = p.resource) as quotas
from pools p order by p.resource`;

export async function readPools(pool: pg.Pool): Promise<(Pool & Pick<ResourceDemands, "quotas">)[]> {
  const { rows } = await pool.query({ name: "pools", text: poolSql });
  return z
    .array(PoolRow)
    .parse(rows)
    .map(({ quotas, ...row }) => ({ ...row, quotas: new Map(Object.entries(quotas)) }));
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

/**
 * Per live run: leases held by resource, unsettled rollouts by stage that wait for a slot, what bounds them, and how much of both
 * is of evaluations. What a person holds, and what a draining run has not begun, asks for nothing.
 */
const demandSql = `
with live as (
  select id, project, status, draining, (config -> 'dispatcher') || coalesce(dispatch, '{}') as dispatcher from runs
  where status = 'running' or id in (select run_id from pool_leases)
),
held as (
  select run_id, json_object_agg(resource, n) as held from
    (select run_id, resource, count(*) as n from pool_leases group by 1, 2) l group by run_id
),
idle as (
  select run_id, count(*)::int as n from sandboxes where idle_since is not null and state = 'open' group by run_id
),
evaluating as (
  select run_id, json_object_agg(resource, n) as held from (
    select l.run_id, l.resource, count(*) as n
    from steps s join rollouts r on r.step_id = s.id join pool_leases l on l.rollout_id = r.id
    where s.purpose = 'evaluate' and s.state = 'gathering' and s.run_id in (select id from live) group by 1, 2
  ) l group by run_id
),
waiting as (
  select r.run_id, json_agg(json_build_object('stage', stage, 'purpose', purpose, 'n', n)) as waiting, min(oldest) as oldest from (
    select r.run_id, r.stage, s.purpose, count(*) as n, min(r.ready_at) as oldest
    from rollouts r join live l on l.id = r.run_id join steps s on s.id = r.step_id
    where r.state = 'waiting' and l.status = 'running' and s.state = 'gathering' and not r.held
      and not (l.draining and r.stage = 'init' and r.attempt = r.first_attempt)
      and not exists (select from groups g where g.id = r.group_id and g.run_id = r.run_id and g.held)
    group by 1, 2, 3
  ) r group by r.run_id
),
tasks as (
  select t.run_id, array_agg(t.task) as tasks
  from (select l.id as run_id, jsonb_array_elements(u.config -> 'taskSets') ->> 'name' as task from live l join runs u using (id)) t
  group by t.run_id
)
select l.id, l.project, l.dispatcher -> 'bounds' as bounds, l.dispatcher ->> 'name' as dispatcher,
  coalesce((l.dispatcher ->> 'weight')::float8, 1) as weight, coalesce((l.dispatcher ->> 'priority')::int, 0) as priority,
  coalesce(h.held, '{}') as held, coalesce(i.n, 0) as idle, coalesce(e.held, '{}') as evaluating, coalesce(w.waiting, '[]') as waiting, t.tasks,
  (extract(epoch from w.oldest) * 1000)::float8 as waiting_since
from live l left join held h on h.run_id = l.id left join evaluating e on e.run_id = l.id left join waiting w on w.run_id = l.id
left join tasks t on t.run_id = l.id left join idle i on i.run_id = l.id
order by l.id`;

const Held = z.partialRecord(z.enum(resources), z.int());
const DemandRow = z.object({
  id: z.string(),
  project: z.string(),
  bounds: z.object({ init: z.int(), run: z.int(), evaluate: z.int() }),
  dispatcher: z.string(),
  weight: z.number(),
  priority: z.int(),
  held: Held,
  /** Environments that no rollout has. */
  idle: z.int(),
  evaluating: Held,
  waiting: z.array(z.object({ stage: z.enum(stages), purpose: z.enum(["train", "evaluate"]), n: z.int() })),
  tasks: z.array(z.string()).nullable(),
  waiting_since: z.number().nullable(),
});
type DemandRow = z.infer<typeof DemandRow>;

/** What demands follow from besides rows. */
export interface DemandFacts {
  /** Whether a task's rollouts take sandboxes. */
  needsSandbox(task: string): boolean;
  /** Whether a dispatcher takes the run slot with the admission to init. */
  holdsRunSlotFromInit(dispatcher: string): boolean;
}
/** Nothing is known: all may need everything. */
const anything: DemandFacts = { needsSandbox: () => true, holdsRunSlotFromInit: () => true };

/** What every live run holds and could use of each resource now. */
export async function readDemands(pool: pg.Pool, facts: DemandFacts = anything): Promise<ResourceDemands[]> {
  const [pools, { rows }] = await Promise.all([readPools(pool), pool.query({ name: "demands", text: demandSql })]);
  const runs = z.array(DemandRow).parse(rows);
  return pools.map(({ quotas, ...one }) => ({
    pool: one,
    demands: runs.map((run) => demandOf(one.resource, run, facts)),
    quotas,
  }));
}

function demandOf(resource: Resource, run: DemandRow, facts: DemandFacts): Demand {
  const held = run.held[resource] ?? 0;
  // What is idle is held as long as nobody else is short of it.
  const kept = resource === "sandbox" ? held + run.idle : held;
  const wanted = Math.max(kept, wantedOf(resource, run, held, run.waiting, facts));
  const own = run.waiting.filter(({ purpose }) => purpose === "evaluate");
  const evaluating = wantedOf(resource, run, run.evaluating[resource] ?? 0, own, facts);
  return {
    runId: run.id,
    weight: run.weight,
    priority: run.priority,
    project: run.project,
    evaluating: Math.min(wanted, evaluating),
    held,
    wanted,
    waitingSince: run.waiting_since,
  };
}

/** Upper bound over the policies: what one leaves unused goes back at the next plan. */
function wantedOf(
  resource: Resource,
  { bounds, tasks, dispatcher }: DemandRow,
  held: number,
  waiting: DemandRow["waiting"],
  facts: DemandFacts,
): number {
  const inLine = (stage: Stage): number => waiting.reduce((sum, row) => sum + (row.stage === stage ? row.n : 0), 0);
  switch (resource) {
    case "initSlot":
      return Math.min(held + inLine("init"), bounds.init);
    case "runSlot":
      return held + inLine("run") + (facts.holdsRunSlotFromInit(dispatcher) ? inLine("init") : 0);
    case "gradeSlot":
      return Math.min(held + inLine("evaluate"), bounds.evaluate);
    case "sandbox":
      return (tasks ?? []).some((task) => facts.needsSandbox(task))
        ? held + inLine("init") + inLine("run") + inLine("evaluate")
        : held;
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

/** What each run has of a pool by its grant or its leases, and with it what is spoken for. */
const grantsSql = `
with leased as (
  select resource, run_id, count(*)::int as n from (
    select resource, run_id from pool_leases
    union all
    -- Idle environments are the run's as leases are.
    select 'sandbox', run_id from sandboxes where idle_since is not null and state = 'open'
  ) l group by 1, 2
),
spoken as (
  select coalesce(g.resource, l.resource) as resource, sum(greatest(coalesce(g.granted, 0), coalesce(l.n, 0)))::int as n
  from pool_grants g full join leased l on l.resource = g.resource and l.run_id = g.run_id group by 1
)
select p.resource, (coalesce(
    g.granted + case when q.quota is null then greatest(${poolRoom("p")} - p.evaluation_reserve - coalesce(s.n, 0), 0) else 0 end,
    ${poolRoom("p")} - p.used + coalesce(l.n, 0)))::int as granted
from pools p left join pool_grants g on g.resource = p.resource and g.run_id = $1
left join leased l on l.resource = p.resource and l.run_id = $1 left join spoken s on s.resource = p.resource
left join project_quotas q on q.resource = p.resource and q.project = (select project from runs where id = $1)`;

/**
 * Leases the run may hold in all; a resource without a grant row counts as what the run holds and the pool has free. What no run
 * was granted and none holds is anybody's: rollouts that came to wait after the sharing need not wait for the next one. Admission
 * keeps to the pool's size whoever takes it first; a project with a quota keeps to its grants.
 */
export async function readGrants(pool: pg.Pool, runId: string): Promise<ResourceCounts> {
  const { rows } = await pool.query({ name: "read-grants", text: grantsSql, values: [runId] });
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

/** Pools whose `used` is not the number of their leases and idle environments: empty when the books are right. */
export async function poolLedger(pool: pg.Pool): Promise<{ resource: Resource; used: number; leases: number }[]> {
  const { rows } = await pool.query(
    `select * from (select p.resource, p.used, ((select count(*) from pool_leases l where l.resource = p.resource)
         + case when p.resource = 'sandbox' then (select count(*) from sandboxes where idle_since is not null and state = 'open') else 0 end)::int as leases
       from pools p) b where used <> leases order by resource`,
  );
  return z.array(z.object({ resource: z.enum(resources), used: z.int(), leases: z.int() })).parse(rows);
}
