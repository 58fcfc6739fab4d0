/** A page of one run's event log: exactly what follows `after`, in order of `seq`. */
import { RunEvent } from "@rolldeck/contracts/events";
import { z } from "zod";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

export interface EventsAfter {
  readonly events: RunEvent[];
  /** Newest seq of the run; 0 before the first event. */
  readonly head: number;
}

/**
 * One statement, so the head and the events are of one snapshot: `head` is never behind the last event.
 * @returns null when there is no such run
 */
export async function readEvents(
  db: Queryable,
  runId: string,
  after: number,
  limit: number,
): Promise<EventsAfter | null> {
  const rows = await readRows(
    db,
    z.object({ head: z.int(), seq: z.int().nullable(), at: z.string().nullable(), body: z.unknown() }),
    `select (r."next_seq" - 1)::float8 as "head", e."seq"::float8 as "seq", ${iso('e."at"')} as "at", e."body"
     from "runs" r left join lateral (
       select * from "events" where "run_id" = r."id" and "seq" > $2 order by "seq" limit $3) e on true
     where r."id" = $1 order by e."seq"`,
    [runId, after, limit],
  );
  const first = rows[0];
  if (!first) return null;
  const events = rows.flatMap(({ seq, at, body }) => (seq === null ? [] : [RunEvent.parse({ runId, seq, at, body })]));
  return { events, head: first.head };
}

/** Newest seq of a run, null when there is no such run. */
export async function readHead(db: Queryable, runId: string): Promise<number | null> {
  const row = await readRow(
    db,
    z.object({ head: z.int() }),
    `select ("next_seq" - 1)::float8 as "head" from "runs" where "id" = $1`,
    [runId],
  );
  return row?.head ?? null;
}
