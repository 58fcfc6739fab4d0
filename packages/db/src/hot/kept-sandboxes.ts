/**
 * Sandboxes that stay for people, and the room they take. Invariants: one that no lease stands for any more takes room of the pool
 * until it is closed; at least one sandbox of the pool is left for rollouts, whoever keeps how many at the same moment; who kept one
 * or let it go is in the run's log with that change, or neither is.
 */
import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import type pg from "pg";
import { asBoundaryError } from "../database-error.ts";
import { cutText } from "./clean-text.ts";
import { eventLog } from "./event-log.ts";

/** A sandbox ends by itself after this, however long it was to be kept. */
const maxLife = "interval '30 hours'";

/** SQL number: sandboxes of any run that stay though no lease stands for them. */
export const keptRoom = `(select count(*)::int from sandboxes k where k.state in ('opening', 'open', 'kept')
  and (k.state = 'kept' or (k.state = 'open' and k.keep_until > now() and k.idle_since is null
    and not exists (select from pool_leases l where l.resource = 'sandbox' and l.rollout_id = k.rollout_id))))`;

/** SQL number: leases there may be of a pool; one is left whatever is kept. @param p alias of the pool's row */
export const poolRoom = (p: string): string =>
  `case when ${p}.resource = 'sandbox' then greatest(${p}.size - ${keptRoom}, least(${p}.size, 1)) else ${p}.size end`;

const keepSql = `
with room as materialized (
  select greatest(p.size - 1, 0) as most, (select count(*)::int from sandboxes m where m.state in ('opening', 'open', 'kept')
    and (m.state = 'kept' or (m.state = 'open' and m.keep_until > now()))) as kept
  from pools p where p.resource = 'sandbox'
),
target as materialized (
  select s.id, s.state = 'kept' or coalesce(s.keep_until > now(), false) as already
  from sandboxes s where s.id = $1 and s.state in ('open', 'kept')
),
stays as (
  update sandboxes s set keep_until = least(now() + $2::float8 * interval '1 minute', s.created_at + ${maxLife}),
    reason = case when $3::text is not null and s.state = 'kept' then 'kept by ' || $3 else s.reason end
  from target t, room r
  where s.id = t.id and s.state in ('open', 'kept') and (t.already or r.kept < r.most)
  returning s.id, s.run_id, s.rollout_id
),
happened as materialized (
  select 1 as ord, run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', 'info', 'message',
      $3::text || ' keeps sandbox ' || id || ' of rollout ' || rollout_id || ' for ' || $2::float8 || ' min') as body
  from stays where $3::text is not null
),
${eventLog()}
select (select count(*)::int from stays) as stays, (select count(*)::int from target) as there, r.most, r.kept,
  (select count(sent) from notified) as notified
from room r`;

/** Decisions come one after the other: each counts what the one before it kept. */
const lockKey = 7_241_905_114;

export type Keeping =
  | { readonly is: "kept" }
  /** Neither open nor kept. */
  | { readonly is: "not-there" }
  /** One more would leave none for rollouts. */
  | { readonly is: "no-room"; readonly kept: number; readonly most: number };

/**
 * Stays when its rollout is done with it, or for longer, from now on; never past 30 hours of its life.
 * @param by who asks, for the run's log; null where it is the run's own setting
 * @throws BoundaryError("infrastructure")
 */
export async function keepSandbox(pool: pg.Pool, id: string, minutes: number, by: string | null): Promise<Keeping> {
  const said = by === null ? null : cutText(by, 200);
  const row = await inTurn(pool, (client) =>
    client.query<{ stays: number; there: number; most: number; kept: number }>(keepSql, [id, minutes, said]),
  );
  if (row.stays === 1) return { is: "kept" };
  return row.there === 0 ? { is: "not-there" } : { is: "no-room", kept: row.kept, most: row.most };
}

export const noRoomWords = ({ kept, most }: { readonly kept: number; readonly most: number }): string =>
  `${kept} of ${most + 1} sandboxes are kept already, and at least one is left for rollouts`;

async function inTurn<T>(pool: pg.Pool, ask: (client: pg.PoolClient) => Promise<{ rows: T[] }>): Promise<T> {
  let broken = true;
  const client = await pool.connect().catch((cause: unknown) => {
    throw asBoundaryError(cause, "a sandbox was not kept");
  });
  try {
    await client.query("select pg_advisory_lock($1)", [lockKey]);
    const { rows } = await ask(client);
    await client.query("select pg_advisory_unlock($1)", [lockKey]);
    broken = false;
    const [row] = rows;
    if (row === undefined) throw new TypeError("there is no pool of sandboxes");
    return row;
  } catch (cause) {
    throw asBoundaryError(cause, "a sandbox was not kept");
  } finally {
    // One that may still hold the lock is closed, not given back.
    client.release(broken);
  }
}

const letGoSql = `
with gone as (
  update sandboxes set keep_until = now() where id = $1 and state = 'kept' returning id, run_id, rollout_id
),
happened as materialized (
  select 1 as ord, run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', 'info', 'message',
      $2::text || ' lets kept sandbox ' || id || ' of rollout ' || rollout_id || ' go') as body
  from gone
),
${eventLog()}
select (select count(*)::int from gone) as gone, (select count(sent) from notified) as notified`;

/** The next sweep closes it. @param by who asks, for the run's log @returns false where it is not kept */
export async function letKeptSandboxGo(pool: pg.Pool, id: string, by: string): Promise<boolean> {
  try {
    const { rows } = await pool.query<{ gone: number }>(letGoSql, [id, cutText(by, 200)]);
    return rows[0]?.gone === 1;
  } catch (cause) {
    throw asBoundaryError(cause, "a sandbox was not let go");
  }
}

const decideSql = `
update sandboxes set reason = 'its agent is done', keep_until = case when $3::float8 is null then now()
  else least(now() + $3::float8 * interval '1 minute', created_at + ${maxLife}) end
where rollout_id = $1 and attempt = $2 and purpose = 'agent' and state = 'kept' and reason = $4`;

/**
 * The rollout is graded: what was held for that stays so long from now, or goes. One that somebody kept meanwhile is theirs.
 * @param minutes null = it goes
 */
export async function decideHeldSandbox(
  pool: pg.Pool,
  { rolloutId, attempt }: { readonly rolloutId: string; readonly attempt: number },
  minutes: number | null,
): Promise<void> {
  try {
    await pool.query(decideSql, [rolloutId, attempt, minutes, heldReason]);
  } catch (cause) {
    throw asBoundaryError(cause, "a held sandbox's time was not written");
  }
}

/** Why it will not stay, for people: said when it is closed. */
export async function sayNotKept(pool: pg.Pool, id: string, why: string): Promise<void> {
  try {
    await pool.query("update sandboxes set reason = $2 where id = $1 and state = 'open'", [id, cutText(why, 200)]);
  } catch (cause) {
    throw asBoundaryError(cause, "a sandbox's reason was not written");
  }
}
