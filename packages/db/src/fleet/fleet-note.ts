/** A change of a fleet worker's state goes into its run's log with the change itself. */
import { eventLog } from "../hot/event-log.ts";

/** What a worker is called in sentences, of columns of `changed`. */
export const workerText = `'GPU worker' || case when role = 'colocated' then '' else ' (' || role || case when role = 'sampler' then ' ' || (replica + 1) else '' end || ')' end`;

/**
 * CTEs after one named `changed` (run_id, role, replica, …); wakes its run. The statement's last select must read
 * `(select count(sent) from notified)`.
 * @param message SQL text over columns of `changed`; null = nothing is said of this row
 * @param level SQL text: info, warning or error
 */
export const fleetNote = (message: string, level = "'info'"): string => `
happened as materialized (
  select row_number() over (order by id) as ord, run_id, 'note' as type, null::text as rollout_id,
    jsonb_build_object('type', 'note', 'level', ${level}, 'message', left(${message}, 900)) as body
  from changed where (${message}) is not null
),
${eventLog({ wakes: "true" })}`;
