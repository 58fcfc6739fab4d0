/** The update job of a step. One holder at a time; its claim fences what older holders send or write. */
import { FencedError } from "@rolldeck/contracts/errors";
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { z } from "zod";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";
import { keepConfig } from "../runs/read-config.ts";
import { backOff } from "./back-off.ts";

const Row = z.object({
  claim: z.int(),
  runId: z.string(),
  stepId: z.string(),
  /** The update it makes, from 1. */
  step: z.int(),
  servingVersion: z.int().nullable(),
  modelId: z.string().nullable(),
  modelBootId: z.string().nullable(),
  samplingSessionId: z.string().nullable(),
  trainerSeq: z.int(),
  /** Below `trainerSeq`: an earlier try of this update has sent requests, and what became of them is not known. */
  settledSeq: z.int(),
  failures: z.int(),
  /** Database clock, milliseconds. */
  createdAtMs: z.number(),
  gatheredAtMs: z.number().nullable(),
  /** When the first holder took it. */
  updateStartedAtMs: z.number(),
});
export type ClaimedUpdate = Readonly<z.infer<typeof Row>> & { readonly config: RunConfig };

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;
const claimSql = `
update steps s set claim = s.claim + 1, worker_id = $2, lease_until = now() + $3::int * interval '1 millisecond',
  update_started_at = coalesce(s.update_started_at, now())
from runs r
where s.id = $1 and r.id = s.run_id and s.state = 'updating' and r.status in ('preparing', 'running', 'pausing')
  and (s.worker_id is null or s.lease_until is null or s.lease_until <= now())
returning s.claim, s.run_id as "runId", s.id as "stepId", s.step, r.config, r.serving_version as "servingVersion",
  r.model_id as "modelId", r.model_boot_id as "modelBootId", r.sampling_session_id as "samplingSessionId",
  r.trainer_seq as "trainerSeq", r.settled_seq as "settledSeq", s.update_failures as failures, ${ms("s.created_at")} as "createdAtMs",
  ${ms("s.gathered_at")} as "gatheredAtMs", ${ms("s.update_started_at")} as "updateStartedAtMs"`;

/** Takes the update of a step in state `updating`, or null: another holds it, or the run is over. */
export async function claimUpdate(pool: pg.Pool, stepId: string, workerId: string): Promise<ClaimedUpdate | null> {
  const { rows } = await pool.query<{ config: unknown }>(claimSql, [stepId, workerId, leaseMs]);
  const [found] = rows;
  if (!found) return null;
  const row = Row.parse(found);
  return { ...row, config: keepConfig(row.runId, found.config) };
}

/** @returns false when the claim is lost: stop and send nothing more */
export async function renewUpdate(pool: pg.Pool, stepId: string, claim: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update steps set lease_until = now() + $3::int * interval '1 millisecond'
     where id = $1 and claim = $2 and state = 'updating' and worker_id is not null`,
    [stepId, claim, leaseMs],
  );
  return rowCount === 1;
}

const failSql = `
with failed as (
  update steps s set worker_id = null, claim = s.claim + 1, update_failures = s.update_failures + $4::boolean::int,
    reason = $3::text,
    -- The lease stands for the back-off: the planner delivers again when it is past.
    lease_until = case when $4::boolean then now() + ${backOff("s.update_failures")} else now() end
  where s.id = $1 and s.claim = $2 and s.state = 'updating' and s.worker_id is not null
  returning s.run_id, s.step
),
happened as materialized (
  select 1 as ord, run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', case when $4::boolean then 'warning' else 'info' end, 'message',
      'The update of step ' || step || case when $4::boolean then ' failed: ' else ' was handed back: ' end || $3::text) as body
  from failed
),
${eventLog({ wakes: "true" })}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/**
 * Counts the failure, gives the lease back and wakes the run. `counted: false` for a graceful hand-back.
 * @throws FencedError
 */
export async function failUpdate(
  pool: pg.Pool,
  update: { readonly stepId: string; readonly claim: number; readonly reason: string; readonly counted?: boolean },
): Promise<void> {
  const { stepId, claim, reason, counted = true } = update;
  const { rows } = await pool.query<{ made: boolean }>(failSql, [stepId, claim, cutText(reason, 900), counted]);
  if (!rows[0]?.made) throw new FencedError(`the update of step ${stepId}`);
}
