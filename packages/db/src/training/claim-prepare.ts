/** The run's prepare job (create or adopt its model). One holder at a time; its claim fences what older holders send or write. */
import { FencedError } from "@rolldeck/contracts/errors";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { type RunStatus, runStatuses } from "@rolldeck/contracts/lifecycle";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { z } from "zod";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";
import { keepConfig } from "../runs/read-config.ts";
import { backOff } from "./back-off.ts";

export interface ClaimedPrepare {
  readonly claim: number;
  readonly runId: string;
  readonly status: RunStatus;
  readonly config: RunConfig;
  /** Updates done. */
  readonly step: number;
  readonly servingVersion: number | null;
  /** The model the row knows, and the backend boot that held it. */
  readonly modelId: string | null;
  readonly modelBootId: string | null;
  readonly samplingSessionId: string | null;
  readonly trainerSeq: number;
  readonly failures: number;
}

const Row = z.object({
  claim: z.int(),
  status: z.enum(runStatuses),
  config: z.unknown(),
  step: z.int(),
  servingVersion: z.int().nullable(),
  modelId: z.string().nullable(),
  modelBootId: z.string().nullable(),
  samplingSessionId: z.string().nullable(),
  trainerSeq: z.int(),
  failures: z.int(),
});

const claimSql = `
update runs set prepare_claim = prepare_claim + 1, prepare_worker_id = $2,
  prepare_lease_until = now() + $3::int * interval '1 millisecond'
where id = $1 and status in ('queued', 'preparing', 'running', 'pausing')
  and (prepare_worker_id is null or prepare_lease_until is null or prepare_lease_until <= now())
returning prepare_claim as claim, status, config, step, serving_version as "servingVersion", model_id as "modelId",
  model_boot_id as "modelBootId", sampling_session_id as "samplingSessionId", trainer_seq as "trainerSeq",
  prepare_failures as failures`;

/** Takes the run's prepare job, or null: another holds it, or the run is over. */
export async function claimPrepare(pool: pg.Pool, runId: string, workerId: string): Promise<ClaimedPrepare | null> {
  const { rows } = await pool.query(claimSql, [runId, workerId, leaseMs]);
  if (rows.length === 0) return null;
  const { config, ...row } = Row.parse(rows[0]);
  return { ...row, runId, config: keepConfig(runId, config) };
}

/** @returns false when the claim is lost: stop and send nothing more */
export async function renewPrepare(pool: pg.Pool, runId: string, claim: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update runs set prepare_lease_until = now() + $3::int * interval '1 millisecond'
     where id = $1 and prepare_claim = $2 and prepare_worker_id is not null`,
    [runId, claim, leaseMs],
  );
  return rowCount === 1;
}

const failSql = `
with happened as materialized (
  select 1 as ord, id as run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', case when $4::boolean then 'warning' else 'info' end, 'message', $3::text) as body
  from runs where id = $1 and prepare_claim = $2 and prepare_worker_id is not null
),
${eventLog({
  wakes: "true",
  // The lease stands for the back-off: the planner asks again when it is past.
  set: `prepare_worker_id = null, prepare_claim = r.prepare_claim + 1, prepare_failures = r.prepare_failures + $4::boolean::int,
    prepare_refusal = case when $5::boolean then $6::text end, prepare_reason = case when $4::boolean then $6::text else r.prepare_reason end,
    prepare_lease_until = case when $4::boolean then now() + ${backOff("r.prepare_failures")} else now() end`,
})}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/**
 * Counts the failure, gives the lease back and wakes the run. `counted: false` for a graceful hand-back.
 * @throws FencedError
 */
export async function failPrepare(
  pool: pg.Pool,
  prepare: {
    readonly runId: string;
    readonly claim: number;
    readonly reason: string;
    readonly counted?: boolean;
    /** Trying again can't help: the planner ends the run with this reason. */
    readonly final?: boolean;
  },
): Promise<void> {
  const { runId, claim, reason, counted = true, final = false } = prepare;
  const words = cutText(`Preparing the model ${counted ? "failed" : "was handed back"}: ${reason}`, 1000);
  const { rows } = await pool.query<{ made: boolean }>(failSql, [
    runId,
    claim,
    words,
    counted,
    final,
    cutText(reason, 500),
  ]);
  if (!rows[0]?.made) throw new FencedError(`the prepare job of run ${runId}`);
}
