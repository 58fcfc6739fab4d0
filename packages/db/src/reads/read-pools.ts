/** Pools across runs: who holds how much of each, who waits, and what each run may hold. */
import type { PoolInfo, Pools } from "@rolldeck/contracts/api/schedule";
import { runStatuses } from "@rolldeck/contracts/lifecycle";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { DispatcherConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { keptRoom } from "../hot/kept-sandboxes.ts";
import { type Queryable, readRows } from "./rows.ts";

const counts = z.partialRecord(z.enum(resources), z.int());
const PoolRow = z.object({
  resource: z.enum(resources),
  size: z.int(),
  used: z.int(),
  kept: z.int(),
  evaluationReserve: z.int(),
  quotas: z.array(z.object({ project: z.string(), quota: z.int(), held: z.int() })),
});
const RunRow = z.object({
  runId: z.string(),
  name: z.string(),
  project: z.string(),
  status: z.enum(runStatuses),
  ordinal: z.int(),
  dispatcher: DispatcherConfig.pick({ priority: true, weight: true }).loose(),
  tasks: z.array(z.string()),
  held: counts,
  granted: counts,
  waiting: z.object({ init: z.int().default(0), run: z.int().default(0), evaluate: z.int().default(0) }),
});

const poolsSql = `
select p."resource", p."size", p."used",
  case when p."resource" = 'sandbox' then ${keptRoom} else 0 end as "kept", p."evaluation_reserve" as "evaluationReserve",
  (select coalesce(json_agg(json_build_object('project', q."project", 'quota', q."quota", 'held',
      (select count(*) from "pool_leases" l join "runs" r on r."id" = l."run_id"
       where l."resource" = q."resource" and r."project" = q."project")) order by q."project"), '[]')
   from "project_quotas" q where q."resource" = p."resource") as "quotas"
from "pools" p`;

/** Runs that run or still hold something. Waiting is counted of running ones alone: others take nothing. */
const runsSql = `
with live as (
  select "id" from "runs" where "status" = 'running' or "id" in (select "run_id" from "pool_leases")
)
select r."id" as "runId", r."name", r."project", r."status",
  (select count(*)::int from "runs" o where (o."created_at", o."id") < (r."created_at", r."id")) as "ordinal",
  coalesce(r."config" -> 'dispatcher', '{}') || coalesce(r."dispatch", '{}') as "dispatcher",
  array(select t ->> 'name' from jsonb_array_elements(r."config" -> 'taskSets') t) as "tasks",
  (select coalesce(json_object_agg("resource", n), '{}') from
    (select "resource", count(*) as n from "pool_leases" where "run_id" = r."id" group by 1) h) as "held",
  (select coalesce(json_object_agg("resource", "granted"), '{}') from "pool_grants" where "run_id" = r."id") as "granted",
  (select coalesce(json_object_agg("stage", n), '{}') from
    (select "stage", count(*) as n from "rollouts"
     where "run_id" = r."id" and "state" = 'waiting' and r."status" = 'running' group by 1) w) as "waiting"
from live join "runs" r using ("id") order by r."created_at", r."id"`;

/** @param needsSandbox whether a task's rollouts take sandboxes */
export async function readPools(db: Queryable, needsSandbox: (task: string) => boolean): Promise<Pools> {
  const rows = await readRows(db, PoolRow, poolsSql);
  const runs = await readRows(db, RunRow, runsSql);
  const pools = resources.flatMap((resource) =>
    rows
      .filter((row) => row.resource === resource)
      .map((row): PoolInfo => ({ ...row, runs: runsOf(resource, runs, needsSandbox) })),
  );
  return { pools };
}

function runsOf(
  resource: Resource,
  runs: readonly z.output<typeof RunRow>[],
  needsSandbox: (task: string) => boolean,
): PoolInfo["runs"] {
  return runs
    .map(({ dispatcher, tasks, held, granted, waiting, ...run }) => ({
      ...run,
      priority: dispatcher.priority,
      weight: dispatcher.weight,
      held: held[resource] ?? 0,
      waiting: waitingFor(resource, waiting, tasks.some(needsSandbox)),
      granted: granted[resource] ?? null,
    }))
    .filter(({ held, waiting }) => held > 0 || waiting > 0)
    .sort((a, b) => b.held - a.held);
}

function waitingFor(resource: Resource, waiting: z.output<typeof RunRow>["waiting"], sandboxed: boolean): number {
  switch (resource) {
    case "initSlot":
      return waiting.init;
    case "runSlot":
      return waiting.run;
    case "gradeSlot":
      return waiting.evaluate;
    case "sandbox":
      return sandboxed ? waiting.init + waiting.evaluate : 0;
    case "gpu":
      return 0;
  }
}
