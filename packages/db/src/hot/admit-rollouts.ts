/**
 * Admission: waiting → queued with its leases, all of one plan in one statement. Invariants: a pool's `used` is the number of its
 * leases and of the idle environments, and never passes its size less what is kept, whoever admits at the same moment; a rollout gets all its leases or stays
 * where it is; what a person holds stays where it is.
 */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { RunStatus, Stage } from "@rolldeck/contracts/lifecycle";
import type { NewLease, RolloutSnapshot } from "@rolldeck/contracts/plan";
import type pg from "pg";
import { environmentsAtHand, environmentsHandedOver } from "./environments.ts";
import { eventLog } from "./event-log.ts";
import { poolRoom } from "./kept-sandboxes.ts";
import { queuedLease } from "./queued-lease.ts";

export interface Admission {
  readonly seen: Pick<RolloutSnapshot, "rolloutId" | "attempt" | "claim">;
  readonly stage: Stage;
  readonly leases: readonly NewLease[];
}

const sql = `
with admission as materialized (
  select * from unnest($3::int[], $4::text[], $5::int[], $6::text[], $7::bigint[]) as a (ord, rollout_id, attempt, stage, claim)
),
holder as materialized (
  select id, group_id, attempt, stage, state, claim, held from rollouts
  where id = any($8::text[]) and run_id = $1 order by id for no key update
),
candidate as materialized (
  select a.* from admission a join holder h on h.id = a.rollout_id and h.attempt = a.attempt and h.stage = a.stage
    and h.claim = a.claim and h.state = 'waiting' and not h.held
  where exists (select from runs where id = $1 and status = $2)
    and not exists (select from groups g where g.id = h.group_id and g.held)
),
locked as materialized (
  select resource, size, used from pools
  where resource = any($10::text[]) and (select count(*) from candidate) > 0 order by resource for no key update
),
-- Counted from what the lock found, not beside it.
pool_lock as materialized (
  select resource, ${poolRoom("l")} - used as free from locked l
),
${environmentsAtHand},
asked as materialized (
  select c.ord, c.rollout_id, c.attempt, l.resource, l.until, l.resource = 'sandbox' and h.id is not null as has_room,
    count(*) filter (where l.resource <> 'sandbox' or h.id is null) over (partition by l.resource order by c.ord) as place
  from unnest($9::int[], $10::text[], $11::text[]) as l (ord, resource, until) join candidate c using (ord)
  left join at_hand h using (ord)
  where not exists (select from pool_leases p where p.resource = l.resource and p.rollout_id = c.rollout_id)
),
admitted as materialized (
  select c.* from candidate c
  where not exists (
    select from asked a left join pool_lock p using (resource) where a.ord = c.ord and not a.has_room and a.place > coalesce(p.free, 0))
),
${environmentsHandedOver},
taken as (
  insert into pool_leases (resource, rollout_id, run_id, attempt, until)
  select a.resource, a.rollout_id, $1, a.attempt, a.until from asked a join admitted using (ord)
  returning resource
),
-- All that the row's check reads is taken from the lock. The check is made of the row as the statement's snapshot has it, before the update
-- finds that it was changed since: \`p.used + n\` would be refused where leases came back meanwhile, though the sum holds.
counted as (
  update pools p set size = l.size,
    used = l.used + t.n - case when t.resource = 'sandbox' then (select count(*)::int from handed) else 0 end
  from (select resource, count(*)::int as n from taken group by resource) t join locked l using (resource)
  where p.resource = t.resource
  returning 1
),
moved as (
  update rollouts r set state = 'queued', not_before = null, lease_until = ${queuedLease("a.ord", "$12")}
  from admitted a where r.id = a.rollout_id
  returning a.ord, r.id, r.stage
),
packed as (
  select stage, (place - 1) / 40 as pack, min(ord) as ord, jsonb_agg(id order by ord) as ids
  from (select *, row_number() over (partition by stage order by ord) as place from moved) m
  group by 1, 2
),
happened as materialized (
  select ord, $1 as run_id, 'rollouts-moved' as type, null::text as rollout_id,
    jsonb_build_object('type', 'rollouts-moved', 'stage', stage, 'state', 'queued', 'rolloutIds', ids) as body
  from packed where (select count(*) from counted) >= 0
),
${eventLog()}
select array(select ord from moved) as ords,
  (select count(*)::int from candidate) - (select count(*)::int from admitted) as full, (select count(sent) from notified) as notified`;

export interface Admitted {
  readonly made: readonly Admission[];
  /** Admissions that only a full pool kept out: their rows are as the planner saw them. */
  readonly full: number;
}

/** @param run its status is as the planner saw it */
export async function admitRollouts(
  pool: pg.Pool,
  run: { readonly runId: string; readonly status: RunStatus },
  admissions: readonly Admission[],
): Promise<Admitted> {
  if (admissions.length === 0) return { made: [], full: 0 };
  const leases = admissions.flatMap(({ leases: wanted }, ord) => wanted.map((lease) => ({ ...lease, ord })));
  const ids = admissions.map(({ seen }) => seen.rolloutId);
  const { rows } = await pool.query<{ ords: number[]; full: number }>({
    name: "admit-rollouts",
    text: sql,
    values: [
      run.runId,
      run.status,
      admissions.map((_, ord) => ord),
      ids,
      admissions.map(({ seen }) => seen.attempt),
      admissions.map(({ stage }) => stage),
      admissions.map(({ seen }) => seen.claim),
      [...new Set(ids)].sort(),
      leases.map(({ ord }) => ord),
      leases.map(({ resource }) => resource),
      leases.map(({ until }) => until),
      leaseMs,
    ],
  });
  const made = new Set(rows[0]?.ords ?? []);
  return { made: admissions.filter((_, ord) => made.has(ord)), full: rows[0]?.full ?? 0 };
}
