/** What the workers' sweep and the stages ask of the sandboxes' rows. */
import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { sandboxRuntimes } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { environmentIdleMinutes, idleOf, isFree } from "../hot/environments.ts";
import { poolRoom } from "../hot/kept-sandboxes.ts";
import { type Queryable, readRow, readRows } from "./rows.ts";

const LiveSandbox = z.object({
  id: z.string(),
  runtime: z.enum(sandboxRuntimes),
  state: z.enum(["opening", "open", "kept"]),
  rolloutId: z.string(),
  runId: z.string(),
  /** Why it is to be closed now; null while it is in use. */
  due: z.string().nullable(),
  /** Somebody asked to look into it: then what is due is kept instead. */
  keep: z.boolean(),
  /** An environment that no rollout has. */
  idle: z.boolean(),
  /** Seconds since its row was written. */
  ageS: z.number(),
});
export type LiveSandbox = z.infer<typeof LiveSandbox>;

/**
 * How many idle environments of a run are too many, and why: others wait for their places, its own gradings do, or its bound of run was
 * lowered. Those that are idle longest go first.
 */
const surplusSql = `
free as materialized (
  select s.id, s.run_id, row_number() over (partition by s.run_id order by s.idle_since, s.id) as place
  from sandboxes s join rollouts r on r.id = s.rollout_id where s.idle_since is not null and ${isFree("s", "r")}
),
surplus as materialized (
  select f.run_id,
    -- Beyond its grant a run may have taken what nobody wants: others wait only where nothing is free.
    case when ${poolRoom("p")} > p.used then 0 else
      (select count(*) from pool_leases l where l.run_id = f.run_id and l.resource = 'sandbox') + ${idleOf("f.run_id")}
      - coalesce((select g.granted from pool_grants g where g.run_id = f.run_id and g.resource = 'sandbox'), p.size) end as above_grant,
    case when ${poolRoom("p")} > p.used then 0 else (select count(*) from rollouts w
      where w.run_id = f.run_id and w.state = 'waiting' and w.stage = 'evaluate' and not exists (select from sandboxes o
        where o.rollout_id = w.id and o.attempt = w.attempt and o.in_place and o.state = 'open')) end as gradings,
    (select count(*) from sandboxes e where e.run_id = f.run_id and e.environment and e.state in ('opening', 'open'))
      - coalesce(u.dispatch -> 'bounds' ->> 'run', u.config -> 'dispatcher' -> 'bounds' ->> 'run')::int as above_bound
  from (select distinct run_id from free) f join runs u on u.id = f.run_id join pools p on p.resource = 'sandbox'
)`;

/**
 * A sandbox is due when nothing can come of it any more: its attempt is over, or the stage that it serves has passed to somebody who
 * opened, or will open, another. An environment is, when it is idle and its run is not running, or has no use for it.
 */
const liveSql = `
with ${surplusSql}
select s.id, s.runtime, s.state, s.rollout_id as "rolloutId", s.run_id as "runId", coalesce(s.keep_until > now() and s.state = 'open', false) as keep,
  s.idle_since is not null as idle, extract(epoch from now() - s.created_at)::float8 as "ageS",
  case
    when s.state = 'kept' then case
      when s.keep_until <= now() then 'it was kept as long as asked'
      when s.reason = '${heldReason}' and (r.state = 'settled' or s.attempt <> r.attempt) then 'its rollout is over' end
    when s.idle_since is not null then case
      when s.keep_until > now() then 'its rollout is over'
      when f.id is null then null
      when u.status <> 'running' then 'its run is ' || u.status
      when s.idle_since < now() - interval '${environmentIdleMinutes} minutes' then 'no rollout came for ${environmentIdleMinutes} minutes'
      when f.place <= x.above_grant then 'other runs wait for its place'
      when f.place <= x.gradings then 'a grading waits for its place'
      when f.place <= x.above_bound then 'the run has more environments than its bound' end
    when s.attempt <> r.attempt then 'another attempt was begun'
    when r.state = 'settled' then 'its rollout is over'
    when s.purpose = 'grade' and (r.stage <> 'evaluate' or r.claim <> s.claim) then 'its grading is over'
    when s.purpose = 'agent' and r.stage = 'evaluate' and not s.in_place then 'its agent is done'
    when s.purpose = 'agent' and r.stage = 'init' and r.claim <> s.claim and not (s.environment and s.state = 'open')
      then 'another worker sets up'
    when s.purpose = 'agent' and exists (
      select from sandboxes o where o.rollout_id = s.rollout_id and o.attempt = s.attempt and o.purpose = 'agent'
        and o.claim > s.claim and o.state = 'open' and o.idle_since is null) then 'another one took its place'
  end as due
from sandboxes s join rollouts r on r.id = s.rollout_id join runs u on u.id = s.run_id
left join free f on f.id = s.id left join surplus x on x.run_id = f.run_id
where s.state in ('opening', 'open', 'kept')
order by s.created_at`;

export const liveSandboxes = (db: Queryable): Promise<LiveSandbox[]> => readRows(db, LiveSandbox, liveSql);

const AgentSandbox = z.object({
  id: z.string(),
  runtime: z.enum(sandboxRuntimes),
  keep: z.boolean(),
  /** Its run keeps it for the next rollout. */
  environment: z.boolean(),
});
const agentSql = `
select id, runtime, coalesce(keep_until > now(), false) as keep, environment from sandboxes
where rollout_id = $1 and attempt = $2 and purpose = 'agent' and state = 'open'
  and (idle_since is null or in_place) order by idle_since is not null, claim desc limit 1`;

/** The one an attempt's agent works in; null where it has none. */
export const agentSandbox = (
  db: Queryable,
  rolloutId: string,
  attempt: number,
): Promise<z.infer<typeof AgentSandbox> | null> => readRow(db, AgentSandbox, agentSql, [rolloutId, attempt]);

/** Told apart from other databases on the hosts that sandboxes run on. */
export async function readDeployment(db: Queryable): Promise<string> {
  const row = await readRow(db, z.object({ deployment: z.string() }), "select deployment from rolldeck_marker");
  if (row === null) throw new NotFoundError("marker", "of this database");
  return row.deployment;
}
