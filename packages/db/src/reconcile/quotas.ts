/** What the operator sets: sizes and reserves of pools, and quotas of projects. Each wakes the runs that may be given more now. */
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { z } from "zod";
import { raiseWake } from "../hot/event-log.ts";

const Quota = z.object({ project: z.string(), resource: z.enum(resources), quota: z.int() });
export type Quota = z.infer<typeof Quota>;

/** All quotas, by project and resource. */
export async function readQuotas(pool: pg.Pool): Promise<Quota[]> {
  const { rows } = await pool.query("select project, resource, quota from project_quotas order by project, resource");
  return z.array(Quota).parse(rows);
}

const PoolSetting = z.object({
  resource: z.enum(resources),
  size: z.int(),
  used: z.int(),
  evaluationReserve: z.int(),
});
export type PoolSetting = z.infer<typeof PoolSetting>;

/** Pools as they were set; what kept sandboxes take of theirs is not taken off. */
export async function readPoolSettings(pool: pg.Pool): Promise<PoolSetting[]> {
  const { rows } = await pool.query(
    `select resource, size, used, evaluation_reserve as "evaluationReserve" from pools order by resource`,
  );
  return z.array(PoolSetting).parse(rows);
}

/** Live runs, by id as everywhere. */
const wakeLive = `
run_lock as materialized (
  select id from runs where status = 'running' and (select count(*) from written) > 0 order by id for no key update
),
woken as (update runs r set ${raiseWake("true")} from run_lock l where r.id = l.id returning r.id)`;

const quotaSql = `
with written as (
  insert into project_quotas as q (project, resource, quota) values ($1, $2, $3)
  on conflict (project, resource) do update set quota = excluded.quota where q.quota <> excluded.quota
  returning 1
), ${wakeLive} select id from woken`;
const dropSql = `
with written as (
  delete from project_quotas where project = $1 and resource = $2 returning 1
), ${wakeLive} select id from woken`;

/**
 * A quota takes nothing away that is held: it comes to hold as leases come back.
 * @param quota null = none @returns the runs that were woken
 */
export async function setQuota(
  pool: pg.Pool,
  {
    project,
    resource,
    quota,
  }: { readonly project: string; readonly resource: Resource; readonly quota: number | null },
): Promise<string[]> {
  const { rows } = await (quota === null
    ? pool.query<{ id: string }>(dropSql, [project, resource])
    : pool.query<{ id: string }>(quotaSql, [project, resource, quota]));
  return rows.map(({ id }) => id);
}

const poolSql = `
with known as materialized (
  select resource, greatest(coalesce($2::int, size), used) as becomes from pools where resource = $1 for no key update
),
written as (
  update pools p set size = greatest(coalesce($2::int, p.size), p.used),
    evaluation_reserve = coalesce($3::int, p.evaluation_reserve)
  from known k
  where p.resource = k.resource and coalesce($3::int, 0) <= k.becomes and (p.size, p.evaluation_reserve) is distinct from
    (greatest(coalesce($2::int, p.size), p.used), coalesce($3::int, p.evaluation_reserve))
  returning 1
), ${wakeLive} select (select becomes from known) as becomes, array(select id from woken) as ids`;

/**
 * A pool never gets smaller than what is held now: asked again, it shrinks as leases come back.
 * @returns the runs that were woken @throws NotFoundError, InputError for a reserve above the size that the pool then has
 */
export async function setPool(
  pool: pg.Pool,
  resource: Resource,
  change: { readonly size?: number | undefined; readonly evaluationReserve?: number | undefined },
): Promise<string[]> {
  const values = [resource, change.size ?? null, change.evaluationReserve ?? null];
  const { rows } = await pool.query<{ becomes: number | null; ids: string[] }>(poolSql, values);
  const { becomes = null, ids = [] } = rows[0] ?? {};
  if (becomes === null) throw new NotFoundError("pool", resource);
  const { evaluationReserve = 0 } = change;
  if (evaluationReserve > becomes) {
    const message = `at most ${becomes}, the pool's size: the rest could never be kept`;
    throw new InputError([{ path: "evaluationReserve", message }]);
  }
  return ids;
}
