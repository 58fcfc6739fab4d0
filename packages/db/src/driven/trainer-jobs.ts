/** Jobs of trainers that are launched with runs. Each change of state is a compare-and-set with its event. */
import { endedRunStatuses, runStatuses } from "@rolldeck/contracts/lifecycle";
import { RunConfig } from "@rolldeck/contracts/run-config";
import {
  endedTrainerJobStates,
  LaunchedTrainer,
  type TrainerJobState,
  trainerJobEdges,
  trainerJobStates,
} from "@rolldeck/contracts/trainer-jobs";
import type pg from "pg";
import { z } from "zod";
import { cleanText, cutText } from "../hot/clean-text.ts";
import { eventLog } from "../hot/event-log.ts";
import { iso, readRows } from "../reads/rows.ts";

/** As an event can hold it. */
const messageChars = 1_400;

const Scene = z.object({
  runId: z.string(),
  status: z.enum(runStatuses),
  config: RunConfig,
  job: z
    .object({ attempt: z.int(), trainer: z.string(), submissionId: z.string(), state: z.enum(trainerJobStates) })
    .nullable(),
});
export type TrainerJobScene = z.infer<typeof Scene>;

const scenesSql = `
select r.id as "runId", r.status, r.config,
  case when j.run_id is null then null else jsonb_build_object(
    'attempt', j.attempt, 'trainer', j.trainer, 'submissionId', j.submission_id, 'state', j.state) end as job
from runs r left join lateral (
  select * from trainer_jobs t where t.run_id = r.id order by t.attempt desc limit 1
) j on true
where r.step_source = 'driven' and r.config -> 'backend' ->> 'name' = any($1::text[])
  and (r.status <> all($2::text[]) or j.state <> all($3::text[]))`;

/** Runs whose trainer may need something done: live ones, and ended ones whose job has not. @param backends names of such backends */
export const trainerJobScenes = (pool: pg.Pool, backends: readonly string[]): Promise<TrainerJobScene[]> =>
  readRows(pool, Scene, scenesSql, [backends, endedRunStatuses, endedTrainerJobStates]);

/** @param set further assignments to the run `r` */
const jobEvent = (from: string, set?: string): string => `
happened as materialized (
  select 1 as ord, run_id, 'trainer-job' as type, null::text as rollout_id,
    jsonb_build_object('type', 'trainer-job', 'attempt', attempt, 'trainer', trainer, 'state', state,
      'message', left(message, 500)) as body
  from ${from}
),
${eventLog(set === undefined ? {} : { set })}`;

const beginSql = `
with made as (
  insert into trainer_jobs (run_id, attempt, trainer, submission_id)
  select id, $2::int, $3::text, $4::text from runs where id = $1 and status <> all($5::text[])
  on conflict do nothing returning run_id, attempt, trainer, state, message
),
${jobEvent("made")}
select (select count(*) from made)::int as made, (select count(sent) from notified)::int as told`;

/** Before anything is submitted. @returns whether it was made: not when there is one, or the run is over */
export async function beginTrainerJob(
  pool: pg.Pool,
  job: { readonly runId: string; readonly attempt: number; readonly trainer: string; readonly submissionId: string },
): Promise<boolean> {
  const values = [job.runId, job.attempt, job.trainer, job.submissionId, endedRunStatuses];
  const { rows } = await pool.query<{ made: number }>(beginSql, values);
  return rows[0]?.made === 1;
}

const moveSql = `
with moved as (
  update trainer_jobs set state = $4::text, message = $5::text,
    started_at = case when $4 = 'running' then now() else started_at end,
    ended_at = case when $4 = any($6::text[]) then now() end
  where run_id = $1 and attempt = $2 and state = $3
  returning run_id, attempt, trainer, state, message
),
${
  // A trainer that is gone has no lease: its run may go on, and the next attempt says when it lives.
  jobEvent("moved", "trainer_lease_until = case when $4 = any($6::text[]) then null else r.trainer_lease_until end")
}
select (select count(*) from moved)::int as moved, (select count(sent) from notified)::int as told`;

/** @returns whether it moved: not when somebody else did */
export async function moveTrainerJob(
  pool: pg.Pool,
  job: {
    readonly runId: string;
    readonly attempt: number;
    readonly from: TrainerJobState;
    readonly to: TrainerJobState;
  },
  message: string | null,
): Promise<boolean> {
  if (!trainerJobEdges[job.from].includes(job.to)) return false;
  const words = message === null ? null : cutText(message, messageChars);
  const values = [job.runId, job.attempt, job.from, job.to, words, endedTrainerJobStates];
  const { rows } = await pool.query<{ moved: number }>(moveSql, values);
  return rows[0]?.moved === 1;
}

/** What it printed last, and why it is where it is: no change of state, so no event. Null leaves what is there. */
export async function noteTrainerJob(
  pool: pg.Pool,
  job: { readonly runId: string; readonly attempt: number },
  note: { readonly message?: string | null; readonly logTail?: string | null },
): Promise<void> {
  await pool.query(
    `update trainer_jobs set message = coalesce($3, message), log_tail = coalesce($4, log_tail)
     where run_id = $1 and attempt = $2
       and (message is distinct from coalesce($3, message) or log_tail <> coalesce($4, log_tail))`,
    [job.runId, job.attempt, whole(note.message), whole(note.logTail)],
  );
}

const whole = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : cleanText(text);

/** Empty for a run that has no launched trainer. */
export async function readLaunchedTrainer(pool: pg.Pool, runId: string): Promise<LaunchedTrainer> {
  const attempts = await readRows(
    pool,
    LaunchedTrainer.shape.attempts.element,
    `select attempt, trainer, submission_id as "submissionId", state, message, log_tail as "logTail",
       ${iso("submitted_at")} as "submittedAt", ${iso("started_at")} as "startedAt", ${iso("ended_at")} as "endedAt"
     from trainer_jobs where run_id = $1 order by attempt desc limit 20`,
    [runId],
  );
  return { runId, attempts };
}
