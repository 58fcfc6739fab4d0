/**
 * An ended evaluation goes on with what it did not score: everything in one statement. Invariants: a scored rollout is not touched;
 * one whose run stage had ended is graded again from what it left, any other starts a new attempt and its old one stays
 * readable; all have their tries before them again, however many attempts they took before; asking twice at once reopens once, because the run's row decides.
 */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, type RunStatus, reopenEdges, runStatuses } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { eventLog, rolloutStatus } from "./event-log.ts";

const sql = `
with run as materialized (
  -- The run's row first: whoever asks second sees it reopened. Nobody else writes an ended run's rollouts and then its row.
  select id, status from runs where id = $1 and kind = 'evaluate' and status = any($2::text[]) for no key update
),
left_over as materialized (
  select r.id, r.attempt, r.run_ending is not null as finished from rollouts r join steps s on s.id = r.step_id join run on run.id = r.run_id
  where s.purpose = 'evaluate' and r.state = 'settled' and (r.outcome <> 'completed' or r.reward is null)
  order by r.id for no key update of r
),
reopened as (
  update steps s set state = 'gathering', claim = s.claim + 1, ended_at = null, gathered_at = null, reason = null
  from run, (select id, state from steps) old
  where s.run_id = run.id and s.purpose = 'evaluate' and s.state = any($4::text[]) and old.id = s.id
    and exists (select from left_over l join rollouts r using (id) where r.step_id = s.id)
  returning s.id, s.run_id, s.step, old.state as was
),
moved as (
  update rollouts r set
    state = 'waiting', stage = case when l.finished then 'evaluate' else 'init' end,
    attempt = r.attempt + (not l.finished)::int, first_attempt = r.attempt + (not l.finished)::int,
    claim = r.claim + 1, worker_id = null, lease_until = null, not_before = null,
    ready_at = now(), stage_started_at = null, deliveries = 0, infrastructure_failures = 0, evaluate_failures = 0,
    outcome = null, ending = case when l.finished then r.run_ending end, run_ending = case when l.finished then r.run_ending end,
    run_reason = case when l.finished then r.run_reason end, reason = null, reward = null, reward_parts = null, success = null, settled_at = null,
    final_answer = case when l.finished then r.final_answer end, first_version = case when l.finished then r.first_version end,
    turns = case when l.finished then r.turns else 0 end, sampled_tokens = case when l.finished then r.sampled_tokens else 0 end
  from left_over l join rollouts own on own.id = l.id join reopened o on o.id = own.step_id
  where r.id = l.id
  returning r.id, r.run_id, r.attempt, r.stage, r.state, r.claim, r.ending, l.finished
),
attempts_begun as (
  insert into attempts (rollout_id, attempt) select id, attempt from moved where not finished returning 1
),
spans_begun as (
  insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at)
  select id, attempt, stage, run_id, now() from moved
  on conflict (rollout_id, attempt, stage) do update set ready_at = excluded.ready_at, started_at = null, ended_at = null
  returning 1
),
happened as materialized (
  select 1 as ord, id as run_id, 'run-status' as type, null::text as rollout_id,
    jsonb_build_object('type', 'run-status', 'from', status, 'to', 'queued', 'reason', $3::text) as body
  from run where (select count(*) from reopened) > 0 or status = 'stopped'
  union all
  select 2, run_id, 'step-status', null, jsonb_build_object('type', 'step-status', 'stepId', id, 'step', step,
    'purpose', 'evaluate', 'from', was, 'to', 'gathering', 'reason', $3::text)
  from reopened
  union all
  select 3, run_id, 'rollout-status', id, ${rolloutStatus({
    rolloutId: "id",
    attempt: "attempt",
    stage: "stage",
    state: "state",
    claim: "claim",
    ending: "ending",
    reason: "$3::text",
  })}
  from moved where (select count(*) from attempts_begun) + (select count(*) from spans_begun) >= 0
),
${eventLog({
  wakes: "true",
  set: "status = 'queued', status_since = now(), reason = $3::text, ended_at = null, prepare_failures = 0, prepare_refusal = null, prepare_reason = null",
})}
select (select count(*) from bumped) = 1 as reopened, (select count(*)::int from moved) as rollouts,
  (select count(sent) from notified) as notified`;

const Reopened = z.object({ reopened: z.boolean(), rollouts: z.int() });
const Now = z.object({ status: z.enum(runStatuses), kind: z.string() });

/**
 * @returns how many rollouts go on
 * @throws NotFoundError; ConflictError for a run that trains, is not over, or has scored everything
 */
export async function reopenEvaluation(pool: pg.Pool, runId: string, reason: string): Promise<{ rollouts: number }> {
  const { rows } = await pool.query(sql, [runId, Object.keys(reopenEdges.run), reason, Object.keys(reopenEdges.step)]);
  const { reopened, rollouts } = Reopened.parse(rows[0]);
  if (reopened) return { rollouts };
  const { rows: found } = await pool.query(`select status, kind from runs where id = $1`, [runId]);
  if (found.length === 0) throw new NotFoundError("run", runId);
  throw new ConflictError(refusal(Now.parse(found[0])));
}

function refusal({ status, kind }: { status: RunStatus; kind: string }): string {
  if (kind !== "evaluate") return `The run is ${status}: only an evaluation can go on after its end.`;
  if (!endedRunStatuses.includes(status)) return `The evaluation is ${status} already.`;
  return "Every rollout of the evaluation is scored: there is nothing left to do.";
}
