/** The outside trainer's sign of life; silent past its lease, its run is paused by the planner. */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "../hot/event-log.ts";

const leaseSql = `
update runs set trainer_lease_until = now() + $2::float8 * interval '1 millisecond'
where id = $1 and step_source = 'driven' and status <> all($3::text[])`;

const versionSql = `
with held as materialized (
  select id, step, model_boot_id from runs
  where id = $1 and serving_version < $2 and model_boot_id is not null for no key update
),
retired as (
  update policy_versions v set state = 'retired' from held h where v.run_id = h.id and v.state = 'serving' returning 1
),
served as (
  insert into policy_versions (run_id, version, step, state, boot_id) select id, $2, step, 'serving', model_boot_id from held
  on conflict (run_id, version) do update set state = 'serving' returning 1
),
happened as materialized (
  select 1 as ord, id as run_id, 'version-serving' as type, null::text as rollout_id,
    jsonb_build_object('type', 'version-serving', 'version', $2::int, 'step', step, 'bootId', model_boot_id) as body
  from held where (select count(*) from retired) + (select count(*) from served) >= 0
),
${eventLog({ wakes: "true", set: "serving_version = $2::int" })}
select count(sent) from notified`;

/** Renews the trainer's lease and notes the version it serves when that is newer. @throws NotFoundError, ConflictError */
export async function renewTrainerLease(
  pool: pg.Pool,
  trainer: { readonly runId: string; readonly leaseMs: number; readonly policyVersion?: number },
): Promise<void> {
  const { runId, leaseMs, policyVersion } = trainer;
  const { rowCount } = await pool.query(leaseSql, [runId, leaseMs, endedRunStatuses]);
  if (rowCount !== 1) throw await whyNot(pool, runId);
  if (policyVersion !== undefined) await pool.query(versionSql, [runId, policyVersion]);
}

const Row = z.object({ source: z.string(), status: z.string() });

async function whyNot(pool: pg.Pool, runId: string): Promise<Error> {
  const { rows } = await pool.query("select step_source as source, status from runs where id = $1", [runId]);
  if (rows.length === 0) return new NotFoundError("run", runId);
  const { source, status } = Row.parse(rows[0]);
  return new ConflictError(source === "driven" ? `the run is ${status}` : "this run makes its own steps");
}
