/**
 * The planner's edges of rollouts: settle, retry, regrade, redeliver, all of one plan in one statement. Each is a compare-and-set
 * on what the planner saw (attempt, stage, state, claim); the claim is raised, so whoever held the stage writes nothing more.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { RolloutOutcome } from "@rolldeck/contracts/lifecycle";
import type { RolloutSnapshot } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { cutText } from "./clean-text.ts";
import { roomsReturned } from "./environments.ts";
import { eventLog, rolloutStatus } from "./event-log.ts";
import { queuedLease } from "./queued-lease.ts";

export interface PlannedMove {
  readonly move: "settle" | "retry" | "regrade" | "redeliver";
  /** The row as the planner saw it. */
  readonly seen: Pick<RolloutSnapshot, "rolloutId" | "attempt" | "stage" | "state" | "claim">;
  readonly outcome?: RolloutOutcome;
  readonly ending?: Ending;
  readonly reason?: string;
  /** Milliseconds of the database's clock. */
  readonly notBefore?: number;
}

const sql = `
with move as materialized (
  select * from unnest($2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::float8[])
    as m (ord, rollout_id, attempt, stage, state, claim, move, outcome, ending, reason, not_before)
),
holder as materialized (
  select id, attempt, stage, state, claim, lease_until from rollouts
  where id = any($13::text[]) and run_id = $1 order by id for no key update
),
granted as materialized (
  select m.* from move m join holder h on h.id = m.rollout_id and h.attempt = m.attempt and h.stage = m.stage
    and h.state = m.state and h.claim = m.claim
  -- A lease that was renewed since is no longer past.
  where m.move <> 'redeliver' or h.lease_until <= now()
),
moved as (
  update rollouts r set
    state = case g.move when 'settle' then 'settled' when 'redeliver' then 'queued' else 'waiting' end,
    stage = case g.move when 'retry' then 'init' when 'regrade' then 'evaluate' else r.stage end,
    attempt = r.attempt + (g.move = 'retry')::int,
    claim = r.claim + 1,
    worker_id = null,
    lease_until = case when g.move = 'redeliver' then ${queuedLease("g.ord", "$14")} end,
    not_before = to_timestamp(g.not_before / 1000),
    ready_at = case when g.move in ('retry', 'regrade') then now() else r.ready_at end,
    stage_started_at = case when g.move in ('retry', 'regrade') then null else r.stage_started_at end,
    deliveries = case when g.move in ('retry', 'regrade') then 0 else r.deliveries end,
    outcome = g.outcome,
    ending = case g.move when 'settle' then g.ending when 'retry' then null when 'regrade' then r.run_ending else r.ending end,
    run_ending = case when g.move = 'retry' then null else r.run_ending end,
    run_reason = case when g.move = 'retry' then null else r.run_reason end,
    reason = case g.move when 'settle' then g.reason when 'redeliver' then r.reason end,
    final_answer = case when g.move = 'retry' then null else r.final_answer end,
    first_version = case when g.move = 'retry' then null else r.first_version end,
    turns = case when g.move = 'retry' then 0 else r.turns end,
    sampled_tokens = case when g.move = 'retry' then 0 else r.sampled_tokens end,
    flags = case when g.move in ('retry', 'regrade') then '{}' else r.flags end,
    settled_at = case when g.move = 'settle' then clock_timestamp() end
  from granted g where r.id = g.rollout_id
  returning g.ord, g.move, r.run_id, r.id, r.attempt, r.stage, r.state, r.claim, r.outcome, r.ending
),
attempts_ended as (
  update attempts a set ended_at = now(), reason = g.reason,
    turns = (select count(*) from transitions t where t.rollout_id = a.rollout_id and t.attempt = a.attempt)
  from granted g where g.move in ('settle', 'retry') and a.rollout_id = g.rollout_id and a.attempt = g.attempt
  returning 1
),
attempts_begun as (
  insert into attempts (rollout_id, attempt) select id, attempt from moved where move = 'retry' returning 1
),
spans_ended as (
  update stage_spans s set ended_at = coalesce(s.ended_at, now())
  from granted g where g.move in ('settle', 'retry') and s.rollout_id = g.rollout_id and s.attempt = g.attempt and s.stage = g.stage
  returning 1
),
spans_begun as (
  insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at)
  select id, attempt, stage, run_id, now() from moved where move in ('retry', 'regrade')
  on conflict (rollout_id, attempt, stage) do update set ready_at = excluded.ready_at, started_at = null, ended_at = null
  returning 1
),
freed as (
  delete from pool_leases l using granted g
  where l.rollout_id = g.rollout_id and (g.move in ('settle', 'retry') or (g.move = 'regrade' and l.until = 'evaluate'))
  returning l.resource, l.rollout_id
),
${roomsReturned},
happened as materialized (
  select m.ord, m.run_id, 'rollout-status' as type, m.id as rollout_id, m.move <> 'redeliver' as wakes,
    ${rolloutStatus({
      rolloutId: "m.id",
      attempt: "m.attempt",
      stage: "m.stage",
      state: "m.state",
      claim: "m.claim",
      outcome: "m.outcome",
      ending: "m.ending",
      reason: "left(g.reason, 500)",
    })} as body
  from moved m join granted g using (ord)
  where (select count(*) from attempts_ended) + (select count(*) from attempts_begun) + (select count(*) from spans_ended)
    + (select count(*) from spans_begun) + (select count(*) from returned) >= 0
),
${eventLog({ counts: "bool_or(wakes) as wakes", wakes: "c.wakes" })}
select array(select ord from moved) as ords, (select count(sent) from notified) as notified`;

/** @returns the moves that were made; the others met another row than the planner saw */
export async function moveRollouts(
  pool: pg.Pool,
  runId: string,
  moves: readonly PlannedMove[],
): Promise<PlannedMove[]> {
  if (moves.length === 0) return [];
  const seen = moves.map((move) => move.seen);
  const ids = [...new Set(seen.map((row) => row.rolloutId))].sort();
  const { rows } = await pool.query<{ ords: number[] }>({
    name: "move-rollouts",
    text: sql,
    values: [
      runId,
      moves.map((_, ord) => ord),
      seen.map((row) => row.rolloutId),
      seen.map((row) => row.attempt),
      seen.map((row) => row.stage),
      seen.map((row) => row.state),
      seen.map((row) => row.claim),
      moves.map((move) => move.move),
      moves.map((move) => move.outcome ?? null),
      moves.map((move) => move.ending ?? null),
      moves.map((move) => (move.reason === undefined ? null : cutText(move.reason, 500))),
      moves.map((move) => move.notBefore ?? null),
      ids,
      leaseMs,
    ],
  });
  const made = new Set(rows[0]?.ords ?? []);
  return moves.filter((_, ord) => made.has(ord));
}
