/** How many rollouts were in each stage, in equal slices of time, from stage_spans; the update lane from steps. */
import type { ReadTimeline, Timeline } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { stages } from "@rolldeck/contracts/lifecycle";
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";
import { sliceCounts } from "./slice-counts.ts";

type Input = z.output<typeof ReadTimeline>;
const Window = z.object({ fromS: z.number(), toS: z.number() });
const laneNames = [...stages, "update"] as const;
const Mark = z.object({
  at: z.string(),
  kind: z.enum(["version", "checkpoint", "adopted", "status"]),
  label: z.string(),
});
const maxMarks = 500;

/** The last `seconds` of the run, or of its life when shorter; a run that ended keeps its last window. @throws NotFoundError */
export async function readTimeline(db: Queryable, input: Input): Promise<Timeline> {
  const window = await readRow(
    db,
    Window,
    `select extract(epoch from coalesce("ended_at", now()))::float8 as "toS",
       greatest(extract(epoch from "created_at"), extract(epoch from coalesce("ended_at", now())) - $2::int)::float8 as "fromS"
     from "runs" where "id" = $1`,
    [input.runId, input.seconds],
  );
  if (!window) throw new NotFoundError("run", input.runId);
  // A window is at least a second wide, or a slice would have no width.
  const fromS = Math.min(window.fromS, window.toS - 1);
  const sliceS = (window.toS - fromS) / input.slices;
  const counts = await sliceCounts(db, intervals, input.runId, { fromS, toS: window.toS, slices: input.slices });
  const none = Array.from({ length: input.slices }, () => 0);
  return {
    runId: input.runId,
    fromAt: new Date(fromS * 1000).toISOString(),
    toAt: new Date(window.toS * 1000).toISOString(),
    sliceMs: sliceS * 1000,
    lanes: laneNames.map((stage) => ({
      stage,
      active: counts.get(`${stage}/active`) ?? none,
      queued: counts.get(`${stage}/queued`) ?? none,
    })),
    marks: await readMarks(db, input.runId, fromS, window.toS),
  };
}

/** Lanes `<stage>/active` and `<stage>/queued`. */
const intervals = `
  with spans as (
    select "stage", "ready_at" as "ready", "started_at" as "started", "ended_at" as "ended" from "stage_spans"
    where "run_id" = $1 and "ready_at" < to_timestamp($3) and ("ended_at" is null or "ended_at" > to_timestamp($2))
    union all
    select 'update', "gathered_at", "update_started_at", "ended_at" from "steps"
    where "run_id" = $1 and "purpose" = 'train' and "gathered_at" < to_timestamp($3)
      and ("ended_at" is null or "ended_at" > to_timestamp($2)))
  select "stage" || '/queued' as "lane", "ready" as a, coalesce("started", "ended") as b from spans
  union all
  select "stage" || '/active', "started", "ended" from spans where "started" is not null`;

/** The newest marks of the window, oldest first. */
async function readMarks(db: Queryable, runId: string, fromS: number, toS: number): Promise<Timeline["marks"]> {
  const marks = await readRows(
    db,
    Mark,
    `select ${iso('"at"')} as "at",
       case "type" when 'version-serving' then 'version' when 'checkpoint-saved' then 'checkpoint'
         when 'model-adopted' then 'adopted' else 'status' end as "kind",
       case "type" when 'version-serving' then 'version ' || ("body" ->> 'version')
         when 'checkpoint-saved' then 'checkpoint ' || ("body" ->> 'name')
         when 'model-adopted' then case when ("body" ->> 'fresh')::boolean then 'model created, ' else 'model adopted, ' end || ("body" ->> 'replayed') || ' steps replayed'
         else coalesce(("body" ->> 'to'), '') || coalesce(': ' || ("body" ->> 'reason'), '') end as "label"
     from "events"
     where "run_id" = $1 and "type" in ('run-status', 'version-serving', 'checkpoint-saved', 'model-adopted')
       and "at" between to_timestamp($2) and to_timestamp($3)
     order by "seq" desc limit ${maxMarks}`,
    [runId, fromS, toS],
  );
  return marks.reverse();
}
