/**
 * A gathering step that is given up by hand: its unsettled rollouts, the step and the events are one statement. A step whose update has
 * begun can't be: the trainer may have moved on by then. Where a rollout moved on since the statement began, nothing happens and it is sent
 * again.
 */
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import type pg from "pg";
import { z } from "zod";
import { cancelledDone, cancelledRollouts, maxSends, movedOn } from "./cancelled-rollouts.ts";
import { cutText } from "./clean-text.ts";
import { eventLog, rolloutStatus } from "./event-log.ts";

const sql = `
with holder as materialized (
  select id, group_id, attempt, stage, state, claim from rollouts
  where step_id = $2 and run_id = $1 order by id for no key update
),
${movedOn},
step_lock as materialized (
  select id from steps where id = $2 and run_id = $1 and state = 'gathering' and (select count(*) from holder) >= 0
  for no key update
),
-- Groups that were drawn since would not be seen here.
run as materialized (
  select id from runs where id = $1 and groups_drawn = $3::int and (select count(*) from step_lock) = 1
    and not exists (select from moved_on)
  for no key update
),
ended as (
  update steps s set state = 'cancelled', claim = s.claim + 1, ended_at = now(), reason = $4::text
  from run where s.id = $2 and s.run_id = run.id
  returning s.id, s.run_id, s.step, s.purpose, s.batch_id
),
put_batch as (
  update batch_requests b set state = 'cancelled' from ended e where b.id = e.batch_id returning 1
),
doomed as materialized (
  select 1 as ord, h.id, 'cancelled' as ending, $4::text as reason from holder h, ended where h.state <> 'settled'
),
${cancelledRollouts},
happened as materialized (
  select ord, $1::text as run_id, 'rollout-status' as type, id as rollout_id, ${rolloutStatus({
    rolloutId: "id",
    attempt: "attempt",
    stage: "stage",
    state: "'settled'",
    claim: "claim",
    outcome: "'cancelled'",
    ending: "ending",
    reason: "reason",
  })} as body
  from moved
  union all
  select 2, run_id, 'step-status', null, jsonb_build_object('type', 'step-status', 'stepId', id, 'step', step,
    'purpose', purpose, 'from', 'gathering', 'to', 'cancelled', 'reason', $4::text)
  from ended where ${cancelledDone} and (select count(*) from put_batch) >= 0
),
${eventLog({ wakes: "true" })}
select (select count(*)::int from ended) as ended, (select count(*)::int from moved) as cancelled,
  (select count(sent) from notified) as notified`;

const Step = z.object({ runId: z.string(), state: z.enum(stepStates), drawn: z.int() });

/**
 * A step that was cancelled before stays so.
 * @returns how many rollouts that ended @throws NotFoundError, ConflictError for a step that updates or is over otherwise
 */
export async function cancelStep(
  pool: pg.Pool,
  stepId: string,
  reason: string,
): Promise<{ runId: string; cancelled: number }> {
  for (let race = 0; ; race++) {
    const { rows } = await pool.query(
      `select s.run_id as "runId", s.state, r.groups_drawn as drawn from steps s join runs r on r.id = s.run_id where s.id = $1`,
      [stepId],
    );
    if (rows.length === 0) throw new NotFoundError("step", stepId);
    const { runId, state, drawn } = Step.parse(rows[0]);
    if (state === "cancelled") return { runId, cancelled: 0 };
    if (state !== "gathering" || race >= maxSends) throw new ConflictError(refusal(state));
    const done = await pool.query<{ ended: number; cancelled: number }>(sql, [
      runId,
      stepId,
      drawn,
      cutText(reason, 500),
    ]);
    if (done.rows[0]?.ended === 1) return { runId, cancelled: done.rows[0].cancelled };
  }
}

function refusal(state: z.infer<typeof Step>["state"]): string {
  if (state === "gathering") return "The step is being changed at this very moment: ask again.";
  if (state === "updating")
    return "The step's update has begun: it can't be cancelled any more; stop the run, or let it end.";
  return `The step is ${state}: it can't be cancelled any more.`;
}
