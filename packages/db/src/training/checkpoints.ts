/** Checkpoints that are COMPLETE on the backend's disk. Version 0 is a warm start. */
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "../hot/event-log.ts";

const Checkpoint = z.object({
  version: z.int(),
  name: z.string(),
  path: z.string(),
  bytes: z.coerce.number().nullable(),
});
export type Checkpoint = Readonly<z.infer<typeof Checkpoint>>;

const sql = `
with put as (
  insert into checkpoints (run_id, version, name, path, bytes, state) values ($1, $2, $3, $4, $5, 'complete')
  on conflict (run_id, version) do update set name = excluded.name, path = excluded.path, bytes = excluded.bytes, created_at = now()
    where (checkpoints.name, checkpoints.path) is distinct from (excluded.name, excluded.path)
  returning run_id
),
happened as materialized (
  select 1 as ord, run_id, 'checkpoint-saved' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-saved', 'version', $2::int, 'name', $3::text, 'bytes', $5::bigint) as body
  from put
),
${eventLog()}
select count(sent) from notified`;

/** Row and event; repeating it changes nothing. */
export async function recordCheckpoint(pool: pg.Pool, runId: string, checkpoint: Checkpoint): Promise<void> {
  const { version, name, path, bytes } = checkpoint;
  await pool.query(sql, [runId, version, name, path, bytes]);
}

/** The newest one; with `version`, the newest of no later version. */
export async function newestCheckpoint(pool: pg.Pool, runId: string, version?: number): Promise<Checkpoint | null> {
  const { rows } = await pool.query(
    `select version, name, path, bytes from checkpoints
     where run_id = $1 and state = 'complete' and version <= coalesce($2::int, version) order by version desc limit 1`,
    [runId, version ?? null],
  );
  return rows.length === 0 ? null : Checkpoint.parse(rows[0]);
}
