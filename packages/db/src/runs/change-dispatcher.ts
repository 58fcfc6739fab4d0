/** Changes of a run's dispatcher while it runs. The config stays as it was launched; what was changed lies over it. */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, runStatuses } from "@rolldeck/contracts/lifecycle";
import { type Bounds, DispatcherChange, DispatcherConfig, type RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { z } from "zod";
import { eventLog } from "../hot/event-log.ts";

/** The config with what was changed of its dispatcher. */
export const withChange = (config: RunConfig, change: DispatcherChange | null): RunConfig =>
  change === null ? config : { ...config, dispatcher: { ...config.dispatcher, ...change } };

const sql = `
with run as materialized (
  select id, status, config -> 'dispatcher' as own, coalesce(dispatch, '{}') as before from runs where id = $1 for no key update
),
changed as materialized (
  select *, before || ($2::jsonb - 'bounds') || case when $2::jsonb ? 'bounds' then jsonb_build_object('bounds',
    (own -> 'bounds') || coalesce(before -> 'bounds', '{}') || ($2::jsonb -> 'bounds')) else '{}' end as after
  from run
),
happened as materialized (
  select 1 as ord, id as run_id, 'dispatcher-changed' as type, null::text as rollout_id, after,
    jsonb_build_object('type', 'dispatcher-changed', 'change', after, 'by', $3::text) as body
  from changed where status <> all($4::text[]) and own || after <> own || before
),
${eventLog({ wakes: "true", counts: "(array_agg(after))[1] as after", set: "dispatch = c.after" })}
select status, own || after as dispatcher, after as change, (select count(sent) from notified) as notified from changed`;

const Row = z.object({ status: z.enum(runStatuses), dispatcher: DispatcherConfig, change: DispatcherChange });

/**
 * Asking for what is so already changes nothing.
 * @param by who asks, for the run's log @throws NotFoundError, ConflictError for a run that is over
 */
export async function changeDispatcher(
  pool: pg.Pool,
  runId: string,
  change: Omit<DispatcherChange, "bounds"> & { readonly bounds?: Partial<Bounds> | undefined },
  by: string,
): Promise<{ dispatcher: DispatcherConfig; change: DispatcherChange }> {
  const { rows } = await pool.query(sql, [runId, JSON.stringify(change), by, endedRunStatuses]);
  if (rows.length === 0) throw new NotFoundError("run", runId);
  const { status, ...now } = Row.parse(rows[0]);
  if (endedRunStatuses.includes(status))
    throw new ConflictError(`The run is ${status}: nothing is dispatched any more.`);
  return now;
}
