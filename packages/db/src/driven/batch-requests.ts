/** Batches that an outside trainer asks for. The request of one trainer step is made once, however often it is sent. */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "../hot/event-log.ts";
import { newId } from "../new-id.ts";

export interface BatchRequest {
  readonly runId: string;
  readonly trainerStep: number;
  readonly instances: readonly { readonly taskSet: number; readonly index: number }[];
  readonly samples: number;
  readonly policyVersion: number;
  readonly deadlineMs: number | null;
}
export const batchStates = ["requested", "gathering", "done", "cancelled"] as const;
export type BatchState = (typeof batchStates)[number];

const sql = `
with run as (
  select id, step_source, status from runs where id = $1
),
put as (
  insert into batch_requests (id, run_id, trainer_step, request, state, deadline_at)
  select $2, id, $3, $4::jsonb, 'requested', now() + $5::float8 * interval '1 millisecond'
  from run where step_source = 'driven' and status <> all($6::text[])
  on conflict (run_id, trainer_step) do nothing
  returning id, run_id, state
),
happened as materialized (
  select 1 as ord, run_id, 'batch-requested' as type, null::text as rollout_id,
    jsonb_build_object('type', 'batch-requested', 'batchId', id, 'step', $3::int,
      'groups', jsonb_array_length($4::jsonb -> 'instances')) as body
  from put
),
${eventLog({ wakes: "true" })}
select run.step_source = 'driven' as driven, run.status, put.id as made, (select count(sent) from notified) as notified
from run left join put on true`;

const Row = z.object({ driven: z.boolean(), status: z.string(), made: z.string().nullable() });
const Known = z.object({ id: z.string(), state: z.enum(batchStates), same: z.boolean() });

/** Idempotent by (run, trainer step). @throws NotFoundError, ConflictError when the same step asked for something else */
export async function requestBatch(
  pool: pg.Pool,
  request: BatchRequest,
): Promise<{ batchId: string; state: BatchState }> {
  const { runId, trainerStep, deadlineMs } = request;
  const { instances, samples, policyVersion } = request;
  const body = JSON.stringify({ instances, samples, policyVersion, deadlineMs });
  const { rows } = await pool.query(sql, [runId, newId(), trainerStep, body, deadlineMs, endedRunStatuses]);
  if (rows.length === 0) throw new NotFoundError("run", runId);
  const row = Row.parse(rows[0]);
  if (!row.driven) throw new ConflictError("this run makes its own steps: launch it with stepSource: driven");
  if (row.made) return { batchId: row.made, state: "requested" };
  const known = await pool.query(
    "select id, state, request = $3::jsonb as same from batch_requests where run_id = $1 and trainer_step = $2",
    [runId, trainerStep, body],
  );
  if (known.rows.length === 0) throw new ConflictError(`the run is ${row.status}`);
  const { id, state, same } = Known.parse(known.rows[0]);
  if (!same) throw new ConflictError(`step ${trainerStep} was asked for before with another request`);
  return { batchId: id, state };
}
