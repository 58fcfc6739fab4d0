/** The run's model exists on a backend boot and a version of it serves. */
import { FencedError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { eventLog } from "../hot/event-log.ts";

export interface ModelSet {
  readonly runId: string;
  /** Claim of the prepare job. */
  readonly claim: number;
  readonly modelId: string;
  readonly bootId: string;
  readonly samplingSessionId: string;
  /** Version that serves now: updates done. */
  readonly version: number;
  /** Checkpoint it was loaded from and steps replayed since; null and 0 for a fresh model. */
  readonly checkpoint: string | null;
  readonly replayed: number;
}

const sql = `
with holder as materialized (
  select id, step, serving_version is null as fresh from runs
  where id = $1 and prepare_claim = $2 and prepare_worker_id is not null and coalesce(serving_version, 0) = $6
  for no key update
),
retired as (
  update policy_versions v set state = 'retired' from holder h
  where v.run_id = h.id and v.state = 'serving' and v.version <> $6 returning 1
),
served as (
  insert into policy_versions (run_id, version, step, state, boot_id, sampling_session_id)
  select id, $6, $6, 'serving', $4, $5 from holder
  on conflict (run_id, version) do update set state = 'serving', boot_id = excluded.boot_id,
    sampling_session_id = excluded.sampling_session_id
  returning 1
),
happened as materialized (
  select e.ord, h.id as run_id, e.body ->> 'type' as type, null::text as rollout_id, e.body
  from holder h, lateral (values
    (1, jsonb_build_object('type', 'model-adopted', 'bootId', $4::text, 'checkpoint', $7::text, 'replayed', $8::int,
      'fresh', h.fresh)),
    (2, jsonb_build_object('type', 'version-serving', 'version', $6::int, 'step', $6::int, 'bootId', $4::text))
  ) as e (ord, body)
  where (select count(*) from retired) + (select count(*) from served) >= 0
),
${eventLog({
  wakes: "true",
  set: `model_id = $3, model_boot_id = $4, sampling_session_id = $5, serving_version = $6, settled_seq = r.trainer_seq, prepare_failures = 0,
    prepare_lease_until = null, prepare_worker_id = null`,
})}
select (select count(*) from bumped) = 1 as made, (select count(sent) from notified) as notified`;

/**
 * The model exists and serves: row, version, events, lease given back, wake: one write.
 * @throws FencedError when the claim is lost, or an update has brought the run to another version meanwhile
 */
export async function setModel(pool: pg.Pool, model: ModelSet): Promise<void> {
  const { rows } = await pool.query<{ made: boolean }>(sql, [
    model.runId,
    model.claim,
    model.modelId,
    model.bootId,
    model.samplingSessionId,
    model.version,
    model.checkpoint,
    model.replayed,
  ]);
  if (!rows[0]?.made) throw new FencedError(`the prepare job of run ${model.runId}`);
}
