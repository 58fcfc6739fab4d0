/** The end of an update: step, version, points, events and wake are one write. */
import { FencedError } from "@rolldeck/contracts/errors";
import type { AnyMetricName } from "@rolldeck/contracts/metrics";
import type pg from "pg";
import { eventLog } from "../hot/event-log.ts";
import { metricColumns, putPoints } from "./write-metrics.ts";

export interface FinishedUpdate {
  readonly runId: string;
  readonly stepId: string;
  readonly claim: number;
  /** The model that made the step: from here on it is the run's, whatever was prepared meanwhile. */
  readonly modelId: string;
  /** Version that serves now. */
  readonly version: number;
  readonly bootId: string;
  readonly samplingSessionId: string;
  /** Points of this step; NaN and infinities are kept as they are. */
  readonly metrics: Readonly<Partial<Record<AnyMetricName, number>>>;
}

const sql = `
with done as (
  update steps s set state = 'done', ended_at = now(), worker_id = null, lease_until = null, reason = null
  where s.id = $2 and s.run_id = $1 and s.claim = $3 and s.state = 'updating' and s.worker_id is not null
  returning s.run_id, s.id, s.step, s.purpose
),
retired as (
  update policy_versions v set state = 'retired' from done d where v.run_id = d.run_id and v.state = 'serving' and v.version <> $4
  returning 1
),
served as (
  insert into policy_versions (run_id, version, step, state, boot_id, sampling_session_id)
  select run_id, $4, step, 'serving', $5, $6 from done
  on conflict (run_id, version) do update set state = 'serving', step = excluded.step, boot_id = excluded.boot_id,
    sampling_session_id = excluded.sampling_session_id
  returning 1
),
${putPoints("select run_id, step from done", "$7", "$8")},
happened as materialized (
  select e.ord, d.run_id, e.body ->> 'type' as type, null::text as rollout_id, e.body, d.step
  from done d, lateral (values
    (1, jsonb_build_object('type', 'step-status', 'stepId', d.id, 'step', d.step, 'purpose', d.purpose, 'from', 'updating',
      'to', 'done', 'reason', null)),
    (2, jsonb_build_object('type', 'version-serving', 'version', $4::int, 'step', d.step, 'bootId', $5::text)),
    (3, jsonb_build_object('type', 'metrics-written', 'step', d.step, 'names', cardinality($7::text[])))
  ) as e (ord, body)
  where (select count(*) from retired) + (select count(*) from served) + (select count(*) from put_points) >= 0
),
${eventLog({
  counts: "max(step) as step",
  wakes: "true",
  set: `step = greatest(r.step, c.step), serving_version = $4, model_id = $9, model_boot_id = $5,
    sampling_session_id = $6, settled_seq = r.trainer_seq`,
})}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified,
  exists (select from steps where id = $2 and claim = $3 and state = 'done') as repeated`;

/** Repeating it with the same claim changes nothing. @throws FencedError */
export async function finishUpdate(pool: pg.Pool, update: FinishedUpdate): Promise<void> {
  const { runId, stepId, claim, modelId, version, bootId, samplingSessionId } = update;
  const { rows } = await pool.query<{ made: boolean; repeated: boolean }>(sql, [
    runId,
    stepId,
    claim,
    version,
    bootId,
    samplingSessionId,
    ...metricColumns(update.metrics),
    modelId,
  ]);
  if (!rows[0]?.made && !rows[0]?.repeated) throw new FencedError(`the update of step ${stepId}`);
}
