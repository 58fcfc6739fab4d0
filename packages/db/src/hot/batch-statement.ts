/**
 * The one SQL statement of a batch, made of the parts its entries need. Locks are taken in one order everywhere: rollouts by id, then
 * pools, then runs by id; the run's row, which orders its events, is locked last and so for the shortest time. Invariants:
 * an entry whose claim is not current changes nothing; `seq` grows by one per written entry, in the order of commits.
 */
import type { BatchParts } from "./batch-rows.ts";
import { roomsReturned } from "./environments.ts";
import { eventLog } from "./event-log.ts";

/** Numbers parameters as they are named, so that the text and the list can't drift apart. */
class Parameters {
  #next = 4;
  take(...types: string[]): string {
    return types.map((type) => `$${this.#next++}::${type}`).join(", ");
  }
}

const statements = new Map<string, { name: string; text: string }>();

/** Parameters: writer id, lane, batch number, then `batchParameters` of the same parts. */
export function batchStatement(parts: BatchParts): { name: string; text: string } {
  const name = `batch-${parts.turns ? "turns-" : ""}${parts.tools ? "tools-" : ""}${parts.edges ? "edges" : ""}`;
  let statement = statements.get(name);
  if (!statement) {
    statement = { name, text: build(parts) };
    statements.set(name, statement);
  }
  return statement;
}

function build(parts: BatchParts): string {
  const p = new Parameters();
  const ctes = [entries(p), judged(parts)];
  const done: string[] = [];
  if (parts.turns || parts.tools) {
    ctes.push(segments(p));
    done.push("put_segments");
  }
  if (parts.turns) {
    ctes.push(turns(p));
    done.push("put_turns", "put_calls", "counted");
  }
  if (parts.tools) {
    ctes.push(results(p));
    done.push("put_results");
  }
  if (parts.edges) {
    ctes.push(edges(p));
    done.push("moved", "spans_ended", "spans_begun", "attempts_ended", "returned");
  }
  ctes.push(log(parts, done));
  return `with ${ctes.join(",\n")}
select marked.seqs, (select json_agg(json_build_object('runId', id, 'seq', last)) from bumped) as runs,
  (select count(sent) from notified) as notified
from marked`;
}

const entries = (p: Parameters): string => `
entry as materialized (
  select * from unnest(${p.take("int[]", "text[]", "text[]", "text[]", "int[]", "bigint[]", "int[]", "int[]", "text[]", "int[]", "int[]", "text[]", "text[]")})
    as e (ord, kind, run_id, rollout_id, attempt, claim, turn, sampled, stage, first_segment, first_call, event_type,
      event_body)
),
holder as materialized (
  select id, run_id, attempt, claim, state, stage from rollouts where id = any(${p.take("text[]")}) order by id for no key update
)`;

/**
 * `repeat`: an earlier try of the same entry by the same claim is in already, which is what its writer wanted. The tables that grow
 * with every turn are looked up row by row (lateral, limit 1): joined, a plan made while they were small would read them
 * whole for every batch until the next analyze.
 */
const judged = (parts: BatchParts): string => `
judged as materialized (
  select e.*, case
    ${parts.turns ? "when t.claim = e.claim then 'repeat' when t.claim is not null then 'fenced'" : ""}
    when h.id is null or h.run_id <> e.run_id or h.attempt <> e.attempt or h.claim <> e.claim or h.state <> 'active' then 'fenced'
    when e.stage is not null and h.stage <> e.stage then 'fenced'
    ${parts.tools ? "when ended.yes or told.yes then 'repeat'" : ""}
    else 'write' end as fate
  from entry e left join holder h on h.id = e.rollout_id
  ${parts.turns ? lookUp("t", "claim", "transitions", "turn = e.turn and e.kind = 'turn'") : ""}
  ${parts.tools ? lookUp("ended", "true as yes", "tool_calls", "turn = e.turn and index = e.first_call and state = 'ended'") : ""}
  ${parts.tools ? lookUp("told", "true as yes", "segments", "index = e.first_segment") : ""}
),
written as materialized (select * from judged where fate = 'write')`;

const lookUp = (name: string, columns: string, table: string, where: string): string =>
  `left join lateral (
    select ${columns} from ${table} where rollout_id = e.rollout_id and attempt = e.attempt and ${where} limit 1) ${name} on true`;

const segments = (p: Parameters): string => `
put_segments as (
  insert into segments (rollout_id, attempt, index, origin, length, tokens, logprobs, policy_version)
  select w.rollout_id, w.attempt, s.index, s.origin, s.length, substring(blob.bytes from s.place for s.bytes),
    substring(blob.bytes from s.logprobs for s.length * 4), s.policy_version
  from unnest(${p.take("int[]", "int[]", "text[]", "int[]", "int[]", "int[]", "int[]", "int[]")})
    as s (ord, index, origin, length, place, bytes, logprobs, policy_version)
  join written w using (ord), (select ${p.take("bytea")} as bytes) blob
  returning 1
)`;

const turns = (p: Parameters): string => `
put_turns as (
  insert into transitions (rollout_id, attempt, turn, claim, prompt_ranges, prompt_tokens, sampled_segment, sampled_tokens,
    stop_reason, policy_version, cache_hit_tokens, sample_ms, parse_error, thread, notes)
  select w.rollout_id, w.attempt, w.turn, w.claim, t.ranges::int[], t.prompt_tokens, t.sampled_segment, w.sampled,
    t.stop_reason, t.policy_version, t.cache_hit_tokens, t.sample_ms, t.parse_error, t.thread, t.notes::jsonb
  from unnest(${p.take("int[]", "text[]", "int[]", "int[]", "text[]", "int[]", "int[]", "float8[]", "text[]", "text[]", "text[]")})
    as t (ord, ranges, prompt_tokens, sampled_segment, stop_reason, policy_version, cache_hit_tokens, sample_ms, parse_error,
      thread, notes)
  join written w using (ord)
  returning rollout_id, turn, policy_version
),
put_calls as (
  insert into tool_calls (rollout_id, attempt, turn, index, name, arguments, raw, state)
  select w.rollout_id, w.attempt, w.turn, c.index, c.name, c.arguments::jsonb, c.raw, 'started'
  from unnest(${p.take("int[]", "int[]", "text[]", "text[]", "text[]")}) as c (ord, index, name, arguments, raw)
  join written w using (ord)
  returning 1
),
-- From its first turn on a rollout is as old as that one, and no longer as the claim that may have waited for it.
counted as (
  update rollouts r set turns = r.turns + 1, sampled_tokens = r.sampled_tokens + w.sampled,
    first_version = case when w.turn = 0 then coalesce(t.policy_version, r.first_version) else r.first_version end
  from written w join put_turns t using (rollout_id, turn) where w.kind = 'turn' and r.id = w.rollout_id
  returning 1
)`;

const results = (p: Parameters): string => `
put_results as (
  update tool_calls c set state = 'ended', output = x.output, error_code = x.error_code, error_message = x.error_message,
    duration_ms = x.duration_ms, final_answer = x.final_answer, whole_bytes = x.whole_bytes,
    next_ranges = coalesce(x.next_ranges, '{}')::int[]
  from unnest(${p.take("int[]", "int[]", "text[]", "text[]", "text[]", "float8[]", "text[]", "bigint[]", "text[]")})
    as x (ord, index, output, error_code, error_message, duration_ms, final_answer, whole_bytes, next_ranges)
  join written w using (ord)
  where c.rollout_id = w.rollout_id and c.attempt = w.attempt and c.turn = w.turn and c.index = x.index
  returning 1
)`;

const edges = (p: Parameters): string => `
edge as materialized (
  select w.run_id, w.rollout_id, w.attempt, w.stage, x.move, x.next_stage, x.ending, x.reason, x.final_answer, x.outcome,
    x.reward, x.reward_parts, x.success, x.not_before_ms, x.flags, x.move in ('infrastructure', 'evaluate') as failed
  from unnest(${p.take("int[]", "text[]", "text[]", "text[]", "text[]", "text[]", "text[]", "float8[]", "text[]", "boolean[]", "float8[]", "text[]")})
    as x (ord, move, next_stage, ending, reason, final_answer, outcome, reward, reward_parts, success, not_before_ms, flags)
  join written w using (ord)
),
moved as (
  update rollouts r set
    stage = coalesce(e.next_stage, r.stage),
    state = case e.move when 'settle' then 'settled' when 'hand-back' then 'queued' else 'waiting' end,
    worker_id = null,
    lease_until = case when e.move = 'hand-back' then now() end,
    not_before = now() + e.not_before_ms * interval '1 millisecond',
    ready_at = case when e.failed or e.move = 'next-stage' then now() else r.ready_at end,
    stage_started_at = case when e.move = 'next-stage' then null else r.stage_started_at end,
    deliveries = case e.move when 'next-stage' then 0 when 'hand-back' then greatest(r.deliveries - 1, 0) else r.deliveries end,
    outcome = e.outcome,
    ending = coalesce(e.ending, r.ending),
    run_ending = case when e.move = 'next-stage' then coalesce(e.ending, r.run_ending) else r.run_ending end,
    run_reason = case when e.move = 'next-stage' then coalesce(e.reason, r.run_reason) else r.run_reason end,
    -- What an earlier attempt died of is not why this one ended.
    reason = case when e.move = 'hand-back' then coalesce(e.reason, r.reason) else e.reason end,
    reward = e.reward,
    reward_parts = e.reward_parts::jsonb,
    success = e.success,
    flags = coalesce(e.flags, '{}')::text[],
    final_answer = coalesce(e.final_answer, r.final_answer),
    infrastructure_failures = r.infrastructure_failures + (e.move = 'infrastructure')::int,
    evaluate_failures = r.evaluate_failures + (e.move = 'evaluate')::int,
    settled_at = case when e.move = 'settle' then clock_timestamp() end
  from edge e where r.id = e.rollout_id
  returning r.id, r.attempt, r.turns, r.state, r.reason
),
spans_ended as (
  update stage_spans s set ended_at = now()
  from edge e where e.move <> 'hand-back' and s.rollout_id = e.rollout_id and s.attempt = e.attempt and s.stage = e.stage
  returning 1
),
spans_begun as (
  insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at)
  select rollout_id, attempt, next_stage, run_id, now() from edge where next_stage is not null
  on conflict (rollout_id, attempt, stage) do update set ready_at = excluded.ready_at, started_at = null, ended_at = null
  returning 1
),
attempts_ended as (
  update attempts a set ended_at = now(), turns = m.turns, reason = m.reason
  from moved m where m.state = 'settled' and a.rollout_id = m.id and a.attempt = m.attempt
  returning 1
),
freed as (
  delete from pool_leases l using edge e
  where l.rollout_id = e.rollout_id and e.move <> 'hand-back' and (e.move = 'settle' or l.until = e.stage)
  returning l.resource, l.rollout_id
),
${roomsReturned}`;

const log = (parts: BatchParts, done: readonly string[]): string => `
happened as materialized (
  select ord, run_id, kind, sampled, event_type as type, rollout_id, event_body::jsonb as body from written
  where ${done.map((name) => `(select count(*) from ${name}) >= 0`).join(" and ")}
),
${eventLog({
  counts: "sum(sampled) as sampled, bool_or(kind = 'edge') as edges",
  set: "sampled_tokens = r.sampled_tokens + c.sampled",
  ...(parts.edges ? { wakes: "c.edges" } : {}),
})},
marked as (
  insert into writer_marks (writer_id, lane, batch, seqs)
  select $1::text, $2::int, $3::bigint,
    array_agg(coalesce(n.seq, case j.fate when 'repeat' then 0 else -1 end) order by j.ord)
  from judged j left join numbered n using (ord)
  on conflict (writer_id, lane) do update set batch = excluded.batch, seqs = excluded.seqs, at = now()
  returning seqs
)`;
