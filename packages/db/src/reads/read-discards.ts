/** How many rollouts of a run were left out of training, by task and length, so that starvation of what takes long shows. */
import { type Discards, discardReasonNames } from "@rolldeck/contracts/api/discards";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { readRunStatus } from "./read-run-status.ts";
import { type Queryable, readRows } from "./rows.ts";

/** Least turns of each length: doubling, as lengths are spread. */
const lengths = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Null = it was trained, or will be. A step that ended without an update trained nothing. */
const why = `case when g."set_aside" is not null then g."set_aside"
  when r."ending" = 'not_needed' then 'not-needed'
  when r."outcome" = 'cancelled' or s."state" in ('cancelled', 'failed') and r."outcome" = 'completed' then 'cancelled'
  when r."outcome" = 'failed' then 'failed' end`;

const sql = `
  with settled as (
    select g."task", (array[${lengths}])[width_bucket(r."turns", array[${lengths}])] as "fromTurns", ${why} as "why"
    from "rollouts" r join "groups" g on g."id" = r."group_id" join "steps" s on s."id" = r."step_id"
    where r."run_id" = $1 and s."purpose" = 'train' and r."state" = 'settled')
  select "task", "fromTurns", "why", count(*)::int as "rollouts" from settled group by 1, 2, 3 order by 1, 2`;

const Row = z.object({
  task: z.string(),
  fromTurns: z.int(),
  why: z.enum(discardReasonNames).nullable(),
  rollouts: z.int(),
});

/** @throws NotFoundError */
export async function readDiscards(db: Queryable, runId: string): Promise<Discards> {
  if ((await readRunStatus(db, runId)) === null) throw new NotFoundError("run", runId);
  const rows: Discards["rows"] = [];
  for (const { task, fromTurns, why: reason, rollouts } of await readRows(db, Row, sql, [runId])) {
    let row = rows.at(-1);
    if (row?.task !== task || row.fromTurns !== fromTurns) {
      row = { task, fromTurns, rollouts: 0, discarded: none() };
      rows.push(row);
    }
    row.rollouts += rollouts;
    if (reason !== null) row.discarded[reason] += rollouts;
  }
  return { runId, rows };
}

const none = () => ({ stale: 0, "zero-variance": 0, "not-needed": 0, cancelled: 0, failed: 0 });
