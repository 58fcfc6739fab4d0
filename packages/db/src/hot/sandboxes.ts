/**
 * Rows of sandboxes. Invariants: a row is written under its stage's claim before the sandbox is opened, so what no live row names
 * is nobody's; `opening → open → (kept →) closed | lost` and nothing else, each change a compare-and-set with its event.
 */
import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import { FencedError } from "@rolldeck/contracts/errors";
import type { SandboxPurpose } from "@rolldeck/contracts/events";
import type pg from "pg";
import { asBoundaryError } from "../database-error.ts";
import { resendOnCollision } from "../resend-on-collision.ts";
import { cleanText, cutText } from "./clean-text.ts";
import { eventLog } from "./event-log.ts";

export interface SandboxClaim {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
}
export interface NewSandboxRow extends SandboxClaim {
  readonly id: string;
  readonly purpose: SandboxPurpose;
  readonly runtime: string;
  /** For people. */
  readonly image: string | null;
  readonly network: string;
  /** The verifier works in it: it stays through grading. */
  readonly inPlace: boolean;
  /** Of an environment, which the run keeps: what it is opened as. */
  readonly fingerprint?: string;
}
/** Milliseconds by the name of what took them. */
export type SandboxPhases = Readonly<Record<string, number>>;

const holder = `
holder as materialized (
  select id from rollouts where id = $2 and run_id = $3 and attempt = $4 and claim = $5 and state = 'active' for share
)`;

const planSql = `
with ${holder},
planned as (
  insert into sandboxes (id, run_id, rollout_id, attempt, purpose, claim, runtime, image, network, state, in_place, environment,
    fingerprint)
  select $1, $3, id, $4, $6, $5, $7, $8, $9, 'opening', $10, $11::text is not null, $11 from holder
  returning id, rollout_id, attempt, environment
),
noted as (
  insert into sandbox_uses (sandbox_id, place, rollout_id, attempt)
  select id, 1, rollout_id, attempt from planned where environment returning 1
)
select id from planned where (select count(*) from noted) >= 0`;

/** Before it is opened. @throws FencedError; BoundaryError("infrastructure") when the database is away */
export async function planSandbox(pool: pg.Pool, row: NewSandboxRow): Promise<void> {
  const values = [
    row.id,
    row.rolloutId,
    row.runId,
    row.attempt,
    row.claim,
    row.purpose,
    row.runtime,
    row.image === null ? null : cutText(row.image, 300),
    cutText(row.network, 300),
    row.inPlace,
    row.fingerprint ?? null,
  ];
  if ((await changed(pool, planSql, values)) !== 1) throw new FencedError(`rollout ${row.rolloutId}`);
}

const openedSql = `
with ${holder},
opened as (
  update sandboxes s set state = 'open', opened_at = clock_timestamp(), phases = s.phases || $6::jsonb
  from holder where s.id = $1 and s.rollout_id = holder.id and s.state = 'opening'
  returning s.*
),
happened as materialized (
  select 1 as ord, run_id, 'sandbox-opened' as type, rollout_id,
    jsonb_build_object('type', 'sandbox-opened', 'rolloutId', rollout_id, 'attempt', attempt, 'sandboxId', id,
      'purpose', purpose, 'runtime', runtime, 'openMs', coalesce((phases->>'open')::float8, (phases->>'reset')::float8, 0))
      || case when uses > 1 then jsonb_build_object('place', uses) else '{}' end as body
  from opened
),
${eventLog()}
select (select count(*)::int from opened) as n, (select count(sent) from notified) as notified`;

/** @throws FencedError when the claim is no longer current: close what was opened */
export async function sandboxOpened(
  pool: pg.Pool,
  claim: SandboxClaim,
  opened: { readonly id: string; readonly phases: SandboxPhases },
): Promise<void> {
  const values = [
    opened.id,
    claim.rolloutId,
    claim.runId,
    claim.attempt,
    claim.claim,
    JSON.stringify(wholeMs(opened.phases)),
  ];
  if ((await counted(pool, openedSql, values)) !== 1) throw new FencedError(`rollout ${claim.rolloutId}`);
}

/** More of what took time in it; a sandbox that is no longer there is left alone. */
export async function addSandboxPhases(pool: pg.Pool, id: string, phases: SandboxPhases): Promise<void> {
  await changed(pool, "update sandboxes set phases = phases || $2::jsonb where id = $1", [
    id,
    JSON.stringify(wholeMs(phases)),
  ]);
}

const endedSql = `
with target as materialized (
  select id, idle_since is not null as idle from sandboxes
  where id = $1 and (state in ('opening', 'open') or (state = 'kept' and $2 <> 'kept'))
    and not ($5 and coalesce(keep_until > now(), false) and reason is distinct from '${heldReason}')
    and ($6::bigint is null or claim = $6) and (not $7 or idle_since is not null)
  for update
),
ended as (
  update sandboxes s set state = $2, phases = phases || $4::jsonb, idle_since = null,
    -- Why it could not be kept stands beside why it was closed.
    reason = case when state = 'open' then nullif(concat_ws('; ', $3::text, reason), '') else $3::text end,
    closed_at = case when $2 = 'kept' then null else clock_timestamp() end
  from target t where s.id = t.id
  returning s.*, t.idle
),
room as (
  update pools p set used = p.used - 1 where p.resource = 'sandbox' and exists (select from ended where idle) returning 1
),
happened as materialized (
  select 1 as ord, run_id, 'sandbox-closed' as type, rollout_id,
    jsonb_build_object('type', 'sandbox-closed', 'rolloutId', rollout_id, 'attempt', attempt, 'sandboxId', id,
      'purpose', purpose, 'state', state, 'reason', reason) as body, idle
  from ended where (select count(*) from room) >= 0
),
${eventLog({ counts: "bool_or(idle) as idle", wakes: "c.idle" })}
select (select count(*)::int from ended) as n, (select count(sent) from notified) as notified`;

/** The run is woken where that makes room in the pool. @returns whether this call ended it; false where somebody else did. */
export async function sandboxEnded(
  pool: pg.Pool,
  id: string,
  end: {
    readonly state: "kept" | "closed" | "lost";
    readonly reason: string | null;
    readonly phases?: SandboxPhases;
    /** Only where nobody wants to keep it any more. */
    readonly unlessKept?: boolean;
    /** Only where this claim has it still: an environment passes on. */
    readonly claim?: number;
    /** Only an environment that no rollout has. */
    readonly ifIdle?: boolean;
  },
): Promise<boolean> {
  const reason = end.reason === null ? null : cutText(end.reason, 300);
  const phases = JSON.stringify(wholeMs(end.phases ?? {}));
  const values = [
    ...[id, end.state, reason, phases, end.unlessKept ?? false],
    ...[end.claim ?? null, end.ifIdle ?? false],
  ];
  return (await counted(pool, endedSql, values)) === 1;
}

const shellSql = `
with happened as materialized (
  select 1 as ord, run_id, 'sandbox-shell' as type, rollout_id,
    jsonb_build_object('type', 'sandbox-shell', 'rolloutId', rollout_id, 'attempt', attempt, 'sandboxId', id,
      'action', $2::text, 'by', $3::text) as body
  from sandboxes where id = $1 and ($2 = 'closed' or state in ('open', 'kept'))
),
${eventLog()}
select (select count(*)::int from happened) as n, (select count(sent) from notified) as notified`;

/** Who looked into a sandbox, and until when. @returns false where there is none that is open or kept */
export async function logShell(
  pool: pg.Pool,
  shell: { readonly sandboxId: string; readonly action: "opened" | "closed"; readonly by: string },
): Promise<boolean> {
  return (await counted(pool, shellSql, [shell.sandboxId, shell.action, cutText(shell.by, 200)])) === 1;
}

const wholeMs = (phases: SandboxPhases): Record<string, number> =>
  Object.fromEntries(Object.entries(phases).map(([name, ms]) => [cleanText(name), Math.round(ms * 10) / 10]));

async function changed(pool: pg.Pool, sql: string, values: readonly unknown[]): Promise<number> {
  try {
    return (await resendOnCollision(() => pool.query(sql, [...values]))).rowCount ?? 0;
  } catch (cause) {
    throw asBoundaryError(cause, "a sandbox's row was not written");
  }
}

async function counted(pool: pg.Pool, sql: string, values: readonly unknown[]): Promise<number> {
  try {
    return (await resendOnCollision(() => pool.query<{ n: number }>(sql, [...values]))).rows[0]?.n ?? 0;
  } catch (cause) {
    throw asBoundaryError(cause, "a sandbox's row was not written");
  }
}
