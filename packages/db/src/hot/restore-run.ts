/**
 * Sets a training run that is over back to one of its checkpoints: everything in one statement. Invariants: nothing is deleted; what
 * came after that version (steps with their rollouts, points, versions, checkpoints, and the runs that began with those) becomes a
 * run of its own, stopped, whose parent is this one, so that every curve has one value a step and the older branch stays a run
 * like any other; the run's own log goes on; the time for which it was over does not count; asking twice at once restores once,
 * because the run's row decides.
 */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, type RunStatus, restoreEdges, runStatuses } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { newId } from "../new-id.ts";
import { eventLog } from "./event-log.ts";

const superseded = "superseded";

/** Tables whose rows after the version go along, and how those are told. */
const along = [
  ["groups", "t.step_id in (select id from later)"],
  ["rollouts", "t.step_id in (select id from later)"],
  ["training_rows", "t.step_id in (select id from later)"],
  ["stage_spans", "t.rollout_id in (select id from later_rollouts)"],
  // What is still open is closed as this run's.
  ["sandboxes", "t.closed_at is not null and t.rollout_id in (select id from later_rollouts)"],
  ["metric_points", "t.step > $2::int"],
  ["checkpoints", "t.version > $2::int"],
  ["servings", "t.version > $2::int"],
] as const;

/** SQL: a run that is to begin with a version of run `r` that goes away, and has not begun: it would get other weights, or none. */
const waitingForkSql = `select f.id from runs f where f.ended_at is null and f.config #>> '{model,startFrom,run}' = r.id
  and (f.config #>> '{model,startFrom,version}')::int > $2::int and not exists (select from checkpoints c where c.run_id = f.id)`;

const sql = `
with run as materialized (
  select r.* from runs r
  where r.id = $1 and r.kind = 'train' and r.step_source = 'planned' and r.status = any($4::text[])
    and r.parent_relation is distinct from '${superseded}'
    and (r.prepare_worker_id is null or r.prepare_lease_until is null or r.prepare_lease_until <= now())
    -- Its model is put away first: the last version is still being saved under this run.
    and (r.model_boot_id is null or not exists (select from gpu_workers g where g.boot_id = r.model_boot_id and g.state = 'ready'))
    and exists (select from checkpoints c where c.run_id = r.id and c.version = $2 and c.state = 'complete')
    and not exists (select from rollouts o where o.run_id = r.id and o.state <> 'settled')
    and not exists (${waitingForkSql})
  for no key update
),
later as materialized (
  select s.id, s.purpose, s.step, s.created_at from steps s join run on run.id = s.run_id where s.step > $2::int
),
later_rollouts as materialized (
  select o.id, o.sampled_tokens from rollouts o where o.step_id in (select id from later)
),
branch as (
  insert into runs (id, name, project, tags, kind, status, reason, config, seed, step_source, steps, next_seq, step, serving_version,
    sampled_tokens, groups_drawn, started_at, ended_at, parent_run_id, parent_version, parent_relation)
  select $3::text, left(name, 180) || ' (superseded)', project, tags, kind, 'stopped',
    'steps ' || ($2::int + 1) || ' to ' || (select max(l.step) from later l) || ' of ' || left(name, 180)
      || ', before it was set back to version ' || $2::int,
    config, seed, step_source, steps, 2, step, serving_version, (select coalesce(sum(sampled_tokens), 0) from later_rollouts), 0,
    (select min(created_at) from later), coalesce(ended_at, now()), id, $2, '${superseded}'
  from run where exists (select from later)
  returning id, name, kind
),
branch_logged as (
  insert into events (run_id, seq, type, body)
  select id, 1, 'run-created', jsonb_build_object('type', 'run-created', 'name', name, 'kind', kind) from branch
  returning 1
),
moved_steps as (
  update steps t set run_id = b.id from branch b where t.id in (select id from later) returning 1
),
${along
  .map(
    ([table, which]) => `moved_${table} as (
  update ${table} t set run_id = b.id from branch b where t.run_id = $1 and ${which} returning 1
)`,
  )
  .join(",\n")},
moved_versions as (
  update policy_versions t set run_id = b.id, state = case t.state when 'serving' then 'retired' else t.state end
  from branch b where t.run_id = $1 and t.version > $2::int returning 1
),
moved_children as (
  update runs t set parent_run_id = b.id from branch b where t.parent_run_id = $1 and t.parent_version > $2::int returning 1
),
happened as materialized (
  select e.ord, run.id as run_id, e.body ->> 'type' as type, null::text as rollout_id, e.body
  from run, lateral (values
    (1, jsonb_build_object('type', 'run-restored', 'version', $2::int, 'supersededRunId', (select id from branch),
      'lastStep', (select max(step) from later), 'by', $5::text)),
    (2, jsonb_build_object('type', 'run-status', 'from', run.status, 'to', 'queued', 'reason', null))
  ) as e (ord, body)
  where (select count(*) from branch_logged) + (select count(*) from moved_steps) + (select count(*) from moved_versions)
    + (select count(*) from moved_children)
    ${along.map(([table]) => `+ (select count(*) from moved_${table})`).join(" ")} >= 0
),
${eventLog({
  wakes: "true",
  set: `status = 'queued', status_since = now(), reason = null, ended_at = null,
    started_at = r.started_at + (now() - coalesce(r.ended_at, now())), step = least(r.step, $2::int), serving_version = $2::int,
    model_boot_id = null, sampling_session_id = null, prepare_failures = 0, prepare_refusal = null, prepare_reason = null, draining = false,
    prepare_claim = r.prepare_claim + 1, prepare_worker_id = null, prepare_lease_until = null`,
})}
select (select count(*) from bumped) = 1 as restored, (select id from branch) as branch,
  (select count(sent) from notified) as notified`;

const Restored = z.object({ restored: z.boolean(), branch: z.string().nullable() });
const Now = z.object({
  status: z.enum(runStatuses),
  kind: z.string(),
  stepSource: z.string(),
  relation: z.string().nullable(),
  hasCheckpoint: z.boolean(),
  waitingFork: z.string().nullable(),
});

/**
 * The run is queued again and goes on from that version.
 * @param by who asks, for the run's log
 * @returns the run that holds its later steps now; null = there were none
 * @throws NotFoundError; ConflictError for a run that is not over, trains elsewhere, has no such checkpoint (any more), or has a later
 * one that another run is about to begin with
 */
export async function restoreRun(
  pool: pg.Pool,
  runId: string,
  version: number,
  by: string,
): Promise<{ readonly supersededRunId: string | null }> {
  const { rows } = await pool.query(sql, [runId, version, newId(), Object.keys(restoreEdges), by]);
  const { restored, branch } = Restored.parse(rows[0]);
  if (restored) return { supersededRunId: branch };
  const { rows: found } = await pool.query(
    `select status, kind, step_source as "stepSource", parent_relation as relation,
       exists (select from checkpoints c where c.run_id = r.id and c.version = $2 and c.state = 'complete') as "hasCheckpoint",
       (${waitingForkSql} limit 1) as "waitingFork"
     from runs r where id = $1`,
    [runId, version],
  );
  if (found.length === 0) throw new NotFoundError("run", runId);
  const now = Now.parse(found[0]);
  throw new ConflictError(restoreRefusal(now) ?? refusalNow(now, version));
}

/** Why a run like this can't be set back to any checkpoint; null = it can. */
export function restoreRefusal(run: {
  readonly status: RunStatus;
  readonly kind: string;
  readonly stepSource: string;
  readonly relation: string | null;
}): string | null {
  if (run.kind !== "train") return "Only a training run can be set back: an evaluation trains nothing.";
  if (run.stepSource === "driven") return "An outside trainer holds this run's weights: set it back there.";
  if (run.relation === superseded)
    return "This run holds superseded steps of another run: start a new run from a checkpoint of it instead.";
  if (!endedRunStatuses.includes(run.status))
    return `The run is ${run.status}: stop it first, then it can be set back to a checkpoint.`;
  return null;
}

function refusalNow({ hasCheckpoint, waitingFork }: z.infer<typeof Now>, version: number): string {
  if (!hasCheckpoint) return `The run has no checkpoint of version ${version} (any more).`;
  if (waitingFork !== null)
    return `Run ${waitingFork} is to begin with a later version of this run and has not begun: wait until it has, or stop it.`;
  return "The run's model is still being put away: try again in a moment.";
}
