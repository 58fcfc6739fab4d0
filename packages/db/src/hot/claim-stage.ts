/**
 * Taking a stage. Invariants: two takers, one claim; the number it gets fences every later write of the stage; a queued stage, or an
 * active one whose lease is past, may be taken, and nothing else. Calls that come together share one statement.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { Purpose } from "@rolldeck/contracts/plan";
import type { Split } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { asBoundaryError } from "../database-error.ts";
import { resendOnCollision } from "../resend-on-collision.ts";
import { readConfig } from "../runs/read-config.ts";
import { Coalescer } from "./coalescer.ts";
import { eventLog, rolloutStatus } from "./event-log.ts";

export interface StageClaimRequest {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly stage: Stage;
  readonly workerId: string;
}

interface TakenStage {
  readonly claim: number;
  readonly runId: string;
  readonly stepId: string;
  readonly step: number;
  readonly purpose: Purpose;
  readonly groupId: string;
  readonly taskSet: number;
  readonly task: string;
  readonly split: Split;
  readonly instanceIndex: number;
  readonly instanceId: string;
  readonly sample: number;
  readonly seed: number;
  readonly attempt: number;
  readonly stage: Stage;
  /**
   * Database clock, milliseconds. The stage's deadline counts from here, over all deliveries of the attempt; later by the time in
   * which nobody had the stage.
   */
  readonly stageStartedAtMs: number;
  /** Times this stage of this attempt was claimed, this one included. */
  readonly deliveries: number;
  readonly ending: Ending | null;
  /** Why the run stage ended as it did, where it said so. */
  readonly runReason: string | null;
  readonly finalAnswer: string | null;
  readonly turns: number;
  /** What samples; null before the first version serves. */
  readonly serving: {
    readonly version: number;
    readonly modelId: string;
    readonly samplingSessionId: string;
    readonly bootId: string;
  } | null;
}
export type ClaimedStage = TakenStage & { readonly config: RunConfig };

const sql = `
with request as materialized (
  select * from unnest($1::int[], $2::text[], $3::int[], $4::text[], $5::text[]) as q (ord, rollout_id, attempt, stage, worker_id)
),
holder as materialized (
  select id from rollouts where id = any($6::text[]) order by id for no key update
),
taken as (
  update rollouts r set state = 'active', claim = r.claim + 1, worker_id = q.worker_id, not_before = null,
    lease_until = now() + $7::int * interval '1 millisecond', deliveries = r.deliveries + 1,
    -- Nobody's time counts for no limit: what was handed back waited past its lease.
    stage_started_at = coalesce(r.stage_started_at + greatest(now() - r.lease_until, interval '0'), now()),
    -- Staleness counts from the oldest turn, which may use a newer version; an attempt that goes on elsewhere keeps it.
    first_version = case when q.stage = 'run' then coalesce(r.first_version, (select serving_version from runs u where u.id = r.run_id))
      else r.first_version end
  from request q
  where r.id = q.rollout_id and r.attempt = q.attempt and r.stage = q.stage and (select count(*) from holder) > 0
    and (r.state = 'queued' or (r.state = 'active' and r.lease_until < now()))
  returning q.ord, r.*
),
spans as (
  update stage_spans s set started_at = coalesce(s.started_at, now()), worker_id = t.worker_id
  from taken t where s.rollout_id = t.id and s.attempt = t.attempt and s.stage = t.stage
  returning 1
),
happened as materialized (
  select ord, run_id, 'rollout-status' as type, id as rollout_id,
    ${rolloutStatus({ rolloutId: "id", attempt: "attempt", stage: "stage", state: "'active'", claim: "claim", ending: "ending" })} as body
  from taken where (select count(*) from spans) >= 0
),
${eventLog()}
select t.ord, t.claim, t.run_id as "runId", t.step_id as "stepId", s.step, s.purpose, t.group_id as "groupId",
  g.task_set as "taskSet", g.task, g.split, g.instance_index as "instanceIndex", g.instance_id as "instanceId", t.sample, t.seed,
  t.attempt, t.stage, extract(epoch from t.stage_started_at)::float8 * 1000 as "stageStartedAtMs", t.deliveries, t.ending,
  t.run_reason as "runReason",
  t.final_answer as "finalAnswer", t.turns,
  case when u.serving_version is not null and u.model_id is not null and u.sampling_session_id is not null then
    json_build_object('version', u.serving_version, 'modelId', u.model_id, 'samplingSessionId', u.sampling_session_id,
      'bootId', u.model_boot_id) end as serving,
  (select count(sent) from notified) as notified
from taken t join steps s on s.id = t.step_id join groups g on g.id = t.group_id join runs u on u.id = t.run_id`;

async function claimAll(pool: pg.Pool, requests: readonly StageClaimRequest[]): Promise<(TakenStage | null)[]> {
  const ids = [...new Set(requests.map((request) => request.rolloutId))].sort();
  const { rows } = await pool.query<TakenStage & { ord: number; notified: number }>({
    name: "claim-stages",
    text: sql,
    values: [
      requests.map((_, ord) => ord),
      requests.map((request) => request.rolloutId),
      requests.map((request) => request.attempt),
      requests.map((request) => request.stage),
      requests.map((request) => request.workerId),
      ids,
      leaseMs,
    ],
  });
  const taken = new Map(rows.map(({ ord, notified: _, ...stage }) => [ord, stage]));
  return requests.map((_, ord) => taken.get(ord) ?? null);
}

const coalescers = new WeakMap<pg.Pool, Coalescer<StageClaimRequest, TakenStage | null>>();

/**
 * Takes the stage for this worker, or null: a late or double delivery, to be dropped.
 * @throws BoundaryError("infrastructure")
 */
export async function claimStage(pool: pg.Pool, request: StageClaimRequest): Promise<ClaimedStage | null> {
  let coalescer = coalescers.get(pool);
  if (!coalescer) {
    coalescer = new Coalescer(
      (requests) => resendOnCollision(() => claimAll(pool, requests)),
      (one) => one.rolloutId,
    );
    coalescers.set(pool, coalescer);
  }
  try {
    const taken = await coalescer.add(request);
    return taken && { ...taken, config: await readConfig(pool, taken.runId) };
  } catch (cause) {
    throw asBoundaryError(cause, "the stage was not claimed");
  }
}
