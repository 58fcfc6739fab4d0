/** Rollouts that will want a sandbox next: those of running runs that wait to be set up, in the order in which they are let in. */
import { z } from "zod";
import { type Queryable, readRows } from "./rows.ts";

const RolloutsToOpen = z.object({
  runId: z.string(),
  taskSet: z.int(),
  split: z.enum(["train", "evaluate"]),
  instanceIndex: z.int(),
  instanceId: z.string(),
  /** Rollouts of this instance among the run's next ones. */
  count: z.int(),
});
export type RolloutsToOpen = z.infer<typeof RolloutsToOpen>;

const toOpenSql = `
select "runId", "taskSet", split, "instanceIndex", "instanceId", count(*)::int as count
from (
  select r.run_id as "runId", g.task_set as "taskSet", g.split, g.instance_index as "instanceIndex",
    g.instance_id as "instanceId",
    row_number() over (partition by r.run_id order by s.created_at, r.ready_at, g.position, r.sample) as place
  from runs n
  join steps s on s.run_id = n.id and s.state = 'gathering'
  join rollouts r on r.step_id = s.id
  join groups g on g.id = r.group_id
  where n.status = 'running' and r.stage = 'init' and r.state = 'waiting'
    and (r.not_before is null or r.not_before <= now())
) waiting
where place <= $1
group by 1, 2, 3, 4, 5
order by min(place)`;

/** @param perRun of each run at most so many rollouts */
export const rolloutsToOpen = (db: Queryable, perRun: number): Promise<RolloutsToOpen[]> =>
  readRows(db, RolloutsToOpen, toOpenSql, [perRun]);
