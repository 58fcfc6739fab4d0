/**
 * Environments: sandboxes that a run keeps, one rollout after the other. A row names the rollout that has the environment; its lease
 * stands for it in the pool. Invariants: when that lease goes and the environment stays, it is idle and takes the lease's room itself
 * (`used` is not lowered); an admission hands an idle one to its rollout and takes no room; closing an idle one gives the room back. So
 * a pool's `used` is always its leases and the idle environments, each change under the pool's row.
 */
import { FencedError } from "@rolldeck/contracts/errors";
import { type SandboxRuntimeName, sandboxRuntimes } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { z } from "zod";
import { asBoundaryError } from "../database-error.ts";
import { resendOnCollision } from "../resend-on-collision.ts";
import type { SandboxClaim } from "./sandboxes.ts";

/** An environment without rollout is closed after this. */
export const environmentIdleMinutes = 15;

/**
 * CTEs after one named `freed` (resource, rollout_id): leases that go. They end in `returned`: rooms given back. An environment whose
 * rollout gave its lease back is idle from here on, in its place.
 */
export const roomsReturned = `
left_idle as (
  update sandboxes s set idle_since = now() from freed f
  where f.resource = 'sandbox' and s.rollout_id = f.rollout_id and s.environment and s.state = 'open' and s.idle_since is null
  returning 1
),
pool_lock as materialized (
  select resource from pools where resource in (select resource from freed) order by resource for no key update
),
returned as (
  update pools p set used = p.used - f.n + case when p.resource = 'sandbox' then (select count(*)::int from left_idle) else 0 end
  from (select resource, count(*)::int as n from freed group by resource) f
  where p.resource = f.resource and (select count(*) from pool_lock) > 0
  returning 1
)`;

/** SQL condition: idle, and its rollout `r` will not come back for it to be graded in it. */
export const isFree = (
  s: string,
  r: string,
): string => `(${s}.environment and ${s}.state = 'open' and ${s}.idle_since is not null
  and coalesce(${s}.keep_until <= now(), true)
  and not (${s}.in_place and ${r}.stage = 'evaluate' and ${r}.state <> 'settled' and ${r}.attempt = ${s}.attempt))`;

/** SQL number: idle environments of run `id`. */
export const idleOf = (id: string): string =>
  `(select count(*)::int from sandboxes i where i.run_id = ${id} and i.idle_since is not null and i.state = 'open')`;

/**
 * CTEs after `candidate` (ord, rollout_id, attempt, stage, claim) and `locked` of an admission of run $1 that asks for $9–$11: which
 * environment each can have. One that is graded in place has its own back. What another statement holds just now is left out.
 */
export const environmentsAtHand = `
own as materialized (
  select c.ord, s.id from candidate c join sandboxes s on s.rollout_id = c.rollout_id and s.attempt = c.attempt
  where c.stage = 'evaluate' and s.environment and s.in_place and s.state = 'open' and s.idle_since is not null
    and (select count(*) from locked) > 0
  for update of s skip locked
),
idle as materialized (
  select s.id, s.idle_since from sandboxes s join rollouts r on r.id = s.rollout_id
  where s.run_id = $1 and ${isFree("s", "r")} and (select count(*) from locked) > 0
  for update of s skip locked
),
at_hand as materialized (
  select ord, id from own
  union all
  select c.ord, i.id from
    (select ord, row_number() over (order by ord) as place from candidate where stage = 'init'
      and ord in (select a.ord from unnest($9::int[], $10::text[]) as a (ord, resource) where a.resource = 'sandbox')) c
    join (select id, row_number() over (order by idle_since desc, id) as place from idle) i using (place)
)`;

/** CTE after `admitted`: the environments' new rollouts. */
export const environmentsHandedOver = `
handed as (
  update sandboxes s set rollout_id = a.rollout_id, attempt = a.attempt, claim = a.claim, idle_since = null
  from admitted a join at_hand h using (ord) where s.id = h.id
  returning 1
)`;

const Taken = z.object({ id: z.string(), runtime: z.enum(sandboxRuntimes), fingerprint: z.string().nullable() });
interface TakenEnvironment {
  readonly id: string;
  readonly runtime: SandboxRuntimeName;
  /** What it was opened as. */
  readonly fingerprint: string | null;
}

/** The one that the admission handed over, or that an earlier claim of this stage had got ready; one that fits is taken in its stead. */
const takeSql = `
with holder as materialized (
  select id from rollouts where id = $1 and run_id = $2 and attempt = $3 and claim = $4 and state = 'active' for share
),
handed as materialized (
  select s.id from sandboxes s join holder h on h.id = s.rollout_id
  where s.environment and s.attempt = $3 and s.state = 'open' and s.idle_since is null
  order by s.claim desc limit 1 for update of s
),
fitting as materialized (
  select s.id from sandboxes s join rollouts r on r.id = s.rollout_id
  where s.run_id = $2 and ${isFree("s", "r")} and s.fingerprint = $5 and (select count(*) from handed) = 1
    and not exists (select from sandboxes m join handed using (id) where m.fingerprint = $5)
  limit 1 for update of s skip locked
),
-- The other way round: what was handed over is idle now, and counts as the fitting one did.
put_back as (
  update sandboxes s set idle_since = now() from handed h where s.id = h.id and (select count(*) from fitting) = 1 returning 1
),
taken as (
  update sandboxes s set state = 'opening', rollout_id = $1, attempt = $3, claim = $4, in_place = $6, idle_since = null,
    keep_until = null, reason = null, phases = '{}', uses = s.uses + 1
  where s.id = (select id from fitting union all select id from handed where (select count(*) from fitting) = 0)
    and (select count(*) from put_back) >= 0
  returning s.id, s.runtime, s.fingerprint, s.uses
),
noted as (
  insert into sandbox_uses (sandbox_id, place, rollout_id, attempt) select id, uses, $1, $3 from taken returning 1
)
select (select count(*)::int from holder) as held, t.id, t.runtime, t.fingerprint
from (select 1) one left join taken t on (select count(*) from noted) >= 0`;

/**
 * Takes the environment that the rollout is to have, to be reset; null = there is none, and one is to be opened.
 * @throws FencedError; BoundaryError("infrastructure") when the database is away
 */
export async function takeEnvironment(
  pool: pg.Pool,
  { rolloutId, runId, attempt, claim }: SandboxClaim,
  wanted: { readonly fingerprint: string; readonly inPlace: boolean },
): Promise<TakenEnvironment | null> {
  const values = [rolloutId, runId, attempt, claim, wanted.fingerprint, wanted.inPlace];
  try {
    const { rows } = await resendOnCollision(() => pool.query(takeSql, values));
    const [row] = rows;
    if (row?.held !== 1) throw new FencedError(`rollout ${rolloutId}`);
    return row.id === null ? null : Taken.parse(row);
  } catch (cause) {
    if (cause instanceof FencedError) throw cause;
    throw asBoundaryError(cause, "an environment was not taken");
  }
}
