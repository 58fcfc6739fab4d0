/**
 * How many rollouts were in each stage, in equal slices of time, from stage_spans; the update lane from steps.
 *
 * A span adds +1 at its start and −1 at its end. SQL sums those edges per slice — the edge itself and the part of its slice
 * that lies after it — and a prefix sum gives the exact mean count of each slice: the work is one pass over the spans,
 * whatever the number of slices.
 */
import type { ReadTimeline, Timeline } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { stages } from "@rolldeck/contracts/lifecycle";
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

type Input = z.output<typeof ReadTimeline>;
const Window = z.object({ fromS: z.number(), toS: z.number() });
const laneNames = [...stages, "update"] as const;
const Edge = z.object({
  stage: z.enum(laneNames),
  kind: z.enum(["active", "queued"]),
  slice: z.int(),
  /** Change of the count in this slice and every later one. */
  change: z.number(),
  /** Σ sign × part of the slice after the edge. */
  partial: z.number(),
});
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
  const edges = await readEdges(db, input.runId, fromS, window.toS, input.slices);
  return {
    runId: input.runId,
    fromAt: new Date(fromS * 1000).toISOString(),
    toAt: new Date(window.toS * 1000).toISOString(),
    sliceMs: sliceS * 1000,
    lanes: laneNames.map((stage) => ({
      stage,
      active: meanCounts(
        edges.filter((edge) => edge.stage === stage && edge.kind === "active"),
        input.slices,
      ),
      queued: meanCounts(
        edges.filter((edge) => edge.stage === stage && edge.kind === "queued"),
        input.slices,
      ),
    })),
    marks: await readMarks(db, input.runId, fromS, window.toS),
  };
}

/** Mean count of each slice from its edges; rounded to a thousandth, which also removes the sums' last-bit noise. */
export function meanCounts(edges: readonly z.output<typeof Edge>[], slices: number): number[] {
  const change = new Float64Array(slices);
  const partial = new Float64Array(slices);
  for (const edge of edges) {
    change[edge.slice] = (change[edge.slice] ?? 0) + edge.change;
    partial[edge.slice] = (partial[edge.slice] ?? 0) + edge.partial;
  }
  let before = 0;
  return Array.from(change, (delta, slice) => {
    const mean = before + (partial[slice] ?? 0);
    before += delta;
    return Math.max(0, Math.round(mean * 1000) / 1000);
  });
}

function readEdges(db: Queryable, runId: string, fromS: number, toS: number, slices: number) {
  return readRows(
    db,
    Edge,
    `with spans as (
       select "stage", "ready_at" as "ready", "started_at" as "started", "ended_at" as "ended" from "stage_spans"
       where "run_id" = $1 and "ready_at" < to_timestamp($3) and ("ended_at" is null or "ended_at" > to_timestamp($2))
       union all
       select 'update', "gathered_at", "update_started_at", "ended_at" from "steps"
       where "run_id" = $1 and "purpose" = 'train' and "gathered_at" < to_timestamp($3)
         and ("ended_at" is null or "ended_at" > to_timestamp($2))),
     intervals as (
       select "stage", 'queued' as "kind", "ready" as a, coalesce("started", "ended") as b from spans
       union all
       select "stage", 'active', "started", "ended" from spans where "started" is not null),
     edges as (
       select "stage", "kind", 1 as sign, extract(epoch from a)::float8 as t from intervals
       union all
       select "stage", "kind", -1, extract(epoch from b)::float8 from intervals where b is not null),
     placed as (
       select "stage", "kind", sign, greatest(t - $2, 0) / $4 as place from edges where t < $3)
     select "stage", "kind", floor(place)::int as "slice", sum(sign)::float8 as "change",
       sum(sign * (1 - (place - floor(place))))::float8 as "partial"
     from placed where floor(place) < $5 group by 1, 2, 3`,
    [runId, fromS, toS, (toS - fromS) / slices, slices],
  );
}

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
