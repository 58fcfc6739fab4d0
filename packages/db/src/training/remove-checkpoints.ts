/**
 * Removing checkpoints: first their rows go out of use, with their events, then their files, then the rows say so. A crash in
 * between leaves rows that are out of use, whose files are deleted later: nothing ever loads what is being deleted.
 */
import type pg from "pg";
import { z } from "zod";
import { cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";
import { isServedSql } from "../servings.ts";
import { withServingsLock } from "../servings-lock.ts";
import { isParentSql } from "./checkpoint-facts.ts";
import { heldRun, type ModelHolder, whileHeld } from "./model-holder.ts";

const Removed = z.array(z.object({ version: z.int(), name: z.string(), path: z.string() }));
export type RemovedCheckpoint = z.infer<typeof Removed>[number];

// The rule saw an earlier moment: what must never go is looked at again here.
const takeSql = (held: string): string => `
with ${held},
gone as (
  update checkpoints c set state = 'pruned' from held h
  where c.run_id = h.run_id and c.version = any($4::int[]) and c.state = 'complete' and c.version > 0 and not c.pinned
    and c.version < (select max(version) from checkpoints where run_id = $1 and state = 'complete')
    and not ${isParentSql("c")} and not ${isServedSql("c")}
  returning c.run_id, c.version, c.name, c.bytes
),
happened as materialized (
  select row_number() over (order by version) as ord, run_id, 'checkpoint-removed' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-removed', 'version', version, 'name', name, 'bytes', bytes) as body
  from gone
),
${eventLog()}
select exists (select from held) as held, (select count(sent) from notified) as notified`;

/** Takes these versions out of use, but for those that something holds by now. @throws FencedError when the holder's claim is lost */
export async function takeOutOfUse(pool: pg.Pool, holder: ModelHolder, versions: readonly number[]): Promise<void> {
  if (versions.length === 0) return;
  const { sql, values } = heldRun(holder);
  await withServingsLock(pool, (client) => whileHeld(client, holder, takeSql(sql), [...values, versions]));
}

/** A pass deletes this many; the rest has its turn with the next. */
const atOnce = 64;

/** SQL condition: checkpoint `c` is out of use, may still have files, and its next try is due. @param c alias of a row of checkpoints */
export const deletableSql = (c: string): string =>
  `${c}.state = 'pruned' and (${c}.delete_after is null or ${c}.delete_after <= now())`;

/** Those of a run whose files may be deleted now. */
export async function outOfUse(pool: pg.Pool, runId: string): Promise<RemovedCheckpoint[]> {
  const { rows } = await pool.query(
    `select version, name, path from checkpoints c where run_id = $1 and ${deletableSql("c")} order by version limit ${atOnce}`,
    [runId],
  );
  return Removed.parse(rows);
}

/** The files are gone: a fact, whoever still holds what. */
export async function markRemoved(pool: pg.Pool, runId: string, { version, path }: RemovedCheckpoint): Promise<void> {
  await pool.query(
    "update checkpoints set state = 'removed' where run_id = $1 and version = $2 and path = $3 and state = 'pruned'",
    [runId, version, path],
  );
}

/** A try an hour at last; what could not be deleted after so many stays where it is. */
const mostDeletes = 10;
const retryIn = (failures: string): string => `least(3600, 10 * power(2, least(${failures}, 9))) * interval '1 second'`;

const failedSql = `
with failed as (
  update checkpoints c set delete_failures = c.delete_failures + 1, delete_after = now() + ${retryIn("c.delete_failures")},
    state = case when c.delete_failures + 1 >= ${mostDeletes} then 'abandoned' else c.state end
  where c.run_id = $1 and c.version = $2 and c.path = $3 and c.state = 'pruned'
  returning c.run_id, c.name, c.state
),
happened as materialized (
  select 1 as ord, run_id, 'note' as type, null::text as rollout_id, jsonb_build_object('type', 'note', 'level', 'warning', 'message',
    'The files of checkpoint ' || name || ', which the run no longer keeps, stay on its server: deleting them failed ${mostDeletes} times, '
      || 'the last time with: ' || $4::text) as body
  from failed where state = 'abandoned'
),
${eventLog()}
select count(sent) from notified`;

/** The server refused to delete the files: the next try is later each time, and after the last one the run's log says what stays. */
export async function markDeleteFailed(
  pool: pg.Pool,
  runId: string,
  { version, path }: RemovedCheckpoint,
  reason: string,
): Promise<void> {
  await pool.query(failedSql, [runId, version, path, cutText(reason, 500)]);
}

const abandonSql = `
with left_there as (
  update checkpoints set state = 'abandoned' where run_id = $1 and state = 'pruned' returning run_id
),
happened as materialized (
  select 1 as ord, $1::text as run_id, 'note' as type, null::text as rollout_id, jsonb_build_object('type', 'note', 'level', 'warning',
    'message', 'Checkpoints that the run no longer keeps stay on its server, which has no call to delete them: delete them there.') as body
  where exists (select from left_there)
    and not exists (select from checkpoints where run_id = $1 and state = 'abandoned')
),
${eventLog()}
select count(sent) from notified`;

/** The run's server has no call that deletes: the files stay, and the run's log says so once. */
export async function abandonFiles(pool: pg.Pool, runId: string): Promise<void> {
  await pool.query(abandonSql, [runId]);
}
