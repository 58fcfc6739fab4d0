/**
 * Readers: workers that read what a run on the fleet saved once its own workers are gone. Invariants: a run has one at most, on the host
 * of its files; it is there because somebody asked for it, or because one of the run's checkpoints is served; nobody holds one for ever
 * by forgetting it. A run's own workers go first: while they are wanted a reader is kept only for who is reading.
 */
import { ConflictError } from "@rolldeck/contracts/errors";
import { endedFleetWorkerStates, type RunWorker } from "@rolldeck/contracts/fleet";
import type pg from "pg";
import { z } from "zod";
import { newId } from "../new-id.ts";
import { readRow } from "../reads/rows.ts";
import { fleetNote, workerText } from "./fleet-note.ts";
import { readFileWorkers } from "./run-workers.ts";
import { askedAgain, wantedAgain } from "./want-workers.ts";

/** Minutes that a reader stays unused. */
export const readerIdleMinutes = 10;
/** The same where the run's own workers are wanted again and may wait for its device. */
const idleBesideOwn = "interval '1 minute'";
/** One that waits for so long, and nobody asks again, waits no more. */
const waitLimit = "interval '1 hour'";

/** Where a run's files are, and who can read them. */
export interface RunFiles {
  /** The run whose workers saved them: of a branch that was set aside, the run that it came from. */
  readonly ownerId: string;
  /** Host on which they are; null while no worker that saves has been placed. */
  readonly host: string | null;
  readonly hostIsRegistered: boolean;
  /** Runs whose files its own workers read as well. */
  readonly reads: readonly string[];
  /** The worker that updates, and the reader, as far as there are any. */
  readonly workers: readonly RunWorker[];
}

const Home = z.object({
  ownerId: z.string(),
  host: z.string().nullable(),
  hostIsRegistered: z.boolean(),
  reads: z.array(z.string()),
});
/** SQL: the run whose workers saved what run `r` has. */
const ownerOf = `case when r.parent_relation = 'superseded' then r.parent_run_id else r.id end`;
const saver = `select w.* from fleet_workers w where w.role in ('colocated', 'trainer')`;

/** Null: there is no such run. */
export async function readRunFiles(pool: pg.Pool, runId: string): Promise<RunFiles | null> {
  const home = await readRow(
    pool,
    Home,
    `select ${ownerOf} as "ownerId", s.host, exists (select from fleet_hosts h where h.name = s.host) as "hostIsRegistered",
       coalesce(s.reads, '{}') as reads
     from runs r left join (${saver}) s on s.run_id = ${ownerOf} where r.id = $1`,
    [runId],
  );
  return home === null ? null : { ...home, workers: await readFileWorkers(pool, home.ownerId) };
}

/** The same kind and size of device that its files were made on, one of it: a process reads with one. */
const insertSql = (from: string): string => `
  insert into fleet_workers as w (id, run_id, role, replica, device, devices, memory_mb, files_on, reads, used_at)
  select f.id, s.run_id, 'reader', 0, s.device, 1, s.memory_mb, s.host, s.reads, now()
  from (${saver}) s join ${from} on f.run_id = s.run_id where s.host is not null and not s.wanted
  on conflict (run_id, role, replica) do update set ${wantedAgain("$1", "$2")}, files_on = excluded.files_on, reads = excluded.reads, used_at = now()
  returning w.*`;

const wantSql = `
with before as materialized (
  select coalesce(bool_or(wanted and not state = any($1)), false) as there from fleet_workers where run_id = $4 and role = 'reader'
),
changed as (${insertSql("(select $3::text as id, $4::text as run_id) f")}),
${fleetNote(`case when not (select there from before) then ${workerText} || ' was asked for by ' || $5::text end`)}
select (select count(*)::int from changed) as wanted, (select count(sent) from notified) as notified`;

/**
 * Asks for the reader of a run's files; asking again lets it stay longer, and makes one that failed try again.
 * @param by who asks, for the run's log
 * @throws ConflictError where the run's own workers are wanted, or have never been anywhere
 */
export async function wantReader(pool: pg.Pool, ownerId: string, by: string): Promise<void> {
  const { rows } = await pool.query<{ wanted: number }>(wantSql, [
    ...[endedFleetWorkerStates, askedAgain, newId(), ownerId, by],
  ]);
  if (rows[0]?.wanted !== 1)
    throw new ConflictError("The run's own workers are wanted now, or none of them has ever had a place on the fleet.");
}

/** Somebody reads through it. Idempotent. */
export async function useReader(pool: pg.Pool, ownerId: string): Promise<void> {
  await pool.query("update fleet_workers set used_at = now() where run_id = $1 and role = 'reader' and wanted", [
    ownerId,
  ]);
}

/** It is given back now. Idempotent. */
export async function unwantReader(pool: pg.Pool, ownerId: string): Promise<void> {
  await pool.query("update fleet_workers set wanted = false where run_id = $1 and role = 'reader' and wanted", [
    ownerId,
  ]);
}

/** SQL condition: one of the checkpoints that the run `w.run_id` saved is served. */
const isServed = `exists (select from servings v join runs r on r.id = v.run_id where v.stopped_at is null and ${ownerOf} = w.run_id)`;
const ownWanted = `exists (select from fleet_workers o where o.run_id = w.run_id and o.role <> 'reader' and o.wanted)`;

/** Those that nobody uses any more, of all runs. What is served keeps its reader until its run's own workers can answer. */
export async function unwantIdleReaders(pool: pg.Pool): Promise<void> {
  await pool.query(
    `update fleet_workers w set wanted = false where w.role = 'reader' and w.wanted and case
       when ${ownWanted} then greatest(w.used_at, w.ready_at) < now() - ${idleBesideOwn}
       when ${isServed} then false
       when w.state = 'ready' then greatest(w.used_at, w.ready_at) < now() - interval '${readerIdleMinutes} minutes'
       else w.used_at < now() - ${waitLimit} end`,
  );
}

/** Runs whose workers are gone while a checkpoint of theirs is served. */
const unansweredSql = `
select w.run_id from (${saver}) w where not w.wanted and ${isServed}
  and not exists (select from fleet_workers o where o.run_id = w.run_id and (o.wanted or o.state = 'stopping'))`;

/** Asks for the readers that servings need. One that ended for good is not asked for again before somebody does. */
export async function wantServingReaders(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ run_id: string }>(unansweredSql);
  for (const { run_id: runId } of rows)
    await pool.query(
      `with changed as (${insertSql("(select $3::text as id, $4::text as run_id) f")}),
       ${fleetNote(`${workerText} || ' is asked for: a checkpoint is served'`)}
       select (select count(sent) from notified) as notified`,
      [endedFleetWorkerStates, askedAgain, newId(), runId],
    );
}
