/** Pinning: a checkpoint that somebody wants kept whatever the run's rule says. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "../hot/event-log.ts";

const sql = `
with run as materialized (select id from runs where id = $1 for no key update),
found as materialized (
  select c.run_id, c.version, c.pinned from checkpoints c join run on run.id = c.run_id
  where c.version = $2 and c.state = 'complete' for no key update of c
),
set_pin as (
  update checkpoints c set pinned = $3 from found f
  where c.run_id = f.run_id and c.version = f.version and f.pinned <> $3::boolean
  returning c.run_id, c.version
),
happened as materialized (
  select 1 as ord, run_id, 'checkpoint-pinned' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-pinned', 'version', version, 'pinned', $3::boolean, 'by', $4::text) as body
  from set_pin
),
${eventLog()}
select (select count(*) from found)::int as found, (select count(sent) from notified)::int as told`;

const Row = z.object({ found: z.int() });

/**
 * Asking for what is so already changes nothing.
 * @param by who asks, for the run's log @throws NotFoundError when the run has no such checkpoint (any more)
 */
export async function pinCheckpoint(
  pool: pg.Pool,
  at: { readonly runId: string; readonly version: number },
  pinned: boolean,
  by: string,
): Promise<void> {
  const { rows } = await pool.query(sql, [at.runId, at.version, pinned, by]);
  if (Row.parse(rows[0]).found === 0) throw new NotFoundError("checkpoint", `${at.runId}-v${at.version}`);
}
