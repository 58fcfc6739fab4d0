/** Checkpoints that are COMPLETE on the backend's disk. Version 0 is a warm start. Each write carries its holder's claim. */
import type pg from "pg";
import { z } from "zod";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";
import { heldRun, type ModelHolder, type TrainerHolder, whileHeld } from "./model-holder.ts";

const Checkpoint = z.object({
  version: z.int(),
  name: z.string(),
  path: z.string(),
  bytes: z.coerce.number().nullable(),
});
export type Checkpoint = Readonly<z.infer<typeof Checkpoint>>;

const recordSql = (held: string): string => `
with ${held},
put as (
  insert into checkpoints (run_id, version, name, path, bytes, state) select run_id, $4, $5, $6, $7, 'complete' from held
  on conflict (run_id, version) do update set name = excluded.name, path = excluded.path, bytes = excluded.bytes,
    state = 'complete', created_at = now(), delete_failures = 0, delete_after = null
    where (checkpoints.name, checkpoints.path, checkpoints.state) is distinct from (excluded.name, excluded.path, 'complete')
  returning run_id
),
happened as materialized (
  select 1 as ord, run_id, 'checkpoint-saved' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-saved', 'version', $4::int, 'name', $5::text, 'bytes', $7::bigint) as body
  from put
),
${eventLog()}
select exists (select from held) as held, (select count(sent) from notified) as notified`;

/** Row and event; repeating it changes nothing. @throws FencedError when the holder's claim is lost */
export async function recordCheckpoint(pool: pg.Pool, holder: ModelHolder, checkpoint: Checkpoint): Promise<void> {
  const { version, name, path, bytes } = checkpoint;
  const { sql, values } = heldRun(holder);
  await whileHeld(pool, holder, recordSql(sql), [...values, version, name, path, bytes]);
}

const loseSql = (held: string): string => `
with ${held},
lost as (
  update checkpoints c set state = 'lost' from held h
  where c.run_id = h.run_id and c.version = $4 and c.path = $5 and c.state = 'complete' returning c.run_id, c.version, c.name
),
happened as materialized (
  select 1 as ord, run_id, 'checkpoint-lost' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-lost', 'version', version, 'name', name, 'reason', $6::text) as body
  from lost
),
${eventLog()}
select exists (select from held) as held, (select count(sent) from notified) as notified`;

/**
 * Its server no longer has these weights, or they are damaged: the run's row is out of use from here on and says so. Rows of other runs
 * under the same path stay: each run finds out for itself, and what a run began with is never exchanged silently.
 * @throws FencedError when the holder's claim is lost
 */
export async function loseCheckpoint(
  pool: pg.Pool,
  holder: TrainerHolder,
  lost: Pick<Checkpoint, "version" | "path"> & { readonly reason: string },
): Promise<void> {
  const { sql, values } = heldRun(holder);
  await whileHeld(pool, holder, loseSql(sql), [...values, lost.version, lost.path, cutText(lost.reason, 500)]);
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
