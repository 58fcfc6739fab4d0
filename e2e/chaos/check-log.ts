/**
 * What must hold of a run whatever was killed: read from its rows and event log, each broken rule as a sentence. An empty list
 * is the pass.
 */
import { endings } from "@rolldeck/contracts/endings";
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { z } from "zod";
import { sandboxLeaseMs } from "../../apps/worker/src/sandboxes/sandbox-spec.ts";

interface Rule {
  readonly says: string;
  /** Rows that break it; `$1` is the run. */
  readonly broken: string;
}

/** Endings whose tokens are trained, as a list of SQL. */
const trained = Object.entries(endings)
  .filter(([, ending]) => ending.trained)
  .map(([name]) => `'${name}'`)
  .join(", ");
/** Until what is past its lease is found and closed, also where nobody was there to look for a while. */
const sweptWithinMs = 15_000;

export const rules: readonly Rule[] = [
  {
    says: "seq counts from 1 without a gap",
    broken: `select seq, expected from (
               select seq, row_number() over (order by seq) as expected from events where run_id = $1) e
              where seq <> expected`,
  },
  {
    says: "next_seq is one past the newest event",
    broken: `select next_seq, newest from (
               select r.next_seq, coalesce((select max(seq) from events e where e.run_id = r.id), 0) as newest
                 from runs r where r.id = $1) s
              where next_seq <> newest + 1`,
  },
  {
    says: "a rollout settles exactly once, and only if its row says so",
    broken: `with said as (
               select coalesce(e.rollout_id, e.body->>'rolloutId') as rollout_id, count(*) as times from events e
                where e.run_id = $1 and e.type = 'rollout-status' and e.body->>'state' = 'settled' group by 1
             ), moved as (
               select id as rollout_id, count(*) as times
                 from events e, jsonb_array_elements_text(e.body->'rolloutIds') id
                where e.run_id = $1 and e.type = 'rollouts-moved' and e.body->>'state' = 'settled' group by 1
             )
             select r.id, r.state, coalesce(s.times, 0) + coalesce(m.times, 0) as times
               from rollouts r left join said s on s.rollout_id = r.id left join moved m on m.rollout_id = r.id
              where r.run_id = $1
                and coalesce(s.times, 0) + coalesce(m.times, 0) <> (r.state = 'settled')::int`,
  },
  {
    says: "turns of an attempt count from 0 without a gap",
    broken: `select rollout_id, attempt, turn, expected from (
               select t.rollout_id, t.attempt, t.turn,
                      row_number() over (partition by t.rollout_id, t.attempt order by t.turn) - 1 as expected
                 from transitions t join rollouts r on r.id = t.rollout_id where r.run_id = $1) t
              where turn <> expected`,
  },
  {
    says: "a turn has one event",
    broken: `select body->>'rolloutId' as rollout, body->>'attempt' as attempt, body->>'turn' as turn, count(*) as times
               from events where run_id = $1 and type = 'turn-sampled' group by 1, 2, 3 having count(*) <> 1`,
  },
  {
    says: "claims rise with the turns of an attempt",
    broken: `select rollout_id, attempt, turn, claim, before from (
               select t.rollout_id, t.attempt, t.turn, t.claim,
                      lag(t.claim) over (partition by t.rollout_id, t.attempt order by t.turn) as before
                 from transitions t join rollouts r on r.id = t.rollout_id where r.run_id = $1) t
              where before > claim`,
  },
  {
    says: "segments of an attempt count from 0 without a gap",
    broken: `select rollout_id, attempt, "index", expected from (
               select s.rollout_id, s.attempt, s."index",
                      row_number() over (partition by s.rollout_id, s.attempt order by s."index") - 1 as expected
                 from segments s join rollouts r on r.id = s.rollout_id where r.run_id = $1) s
              where "index" <> expected`,
  },
  {
    says: "no two steps train one rollout",
    broken: `select rollout_id, count(distinct step_id) as steps from training_rows where run_id = $1
              group by rollout_id having count(distinct step_id) > 1`,
  },
  {
    says: "a step trains its own rollouts, and of each the attempt that counts",
    broken: `select t.step_id, t.row, t.rollout_id, t.attempt, r.attempt as counts
               from training_rows t join rollouts r on r.id = t.rollout_id
              where t.run_id = $1 and (r.step_id <> t.step_id or r.attempt <> t.attempt)`,
  },
  {
    says: "no step trains the same tokens of a rollout twice",
    broken: `select step_id, rollout_id, ranges, count(*) as times from training_rows where run_id = $1
              group by 1, 2, 3 having count(*) > 1`,
  },
  {
    says: "a step that is done trained every rollout it accepted",
    broken: `select r.id, r.step_id, r.ending from rollouts r join steps s on s.id = r.step_id join groups g on g.id = r.group_id
              where r.run_id = $1 and s.state = 'done' and s.purpose = 'train' and g.set_aside is null
                and r.outcome = 'completed' and r.ending in (${trained})
                and not exists (select from training_rows t where t.step_id = s.id and t.rollout_id = r.id)`,
  },
  {
    says: "no step trains staler rollouts than the run allows",
    broken: `select m.step, m.value from metric_points m join runs r on r.id = m.run_id
              where r.id = $1 and m.name = 'staleness/max' and r.config->'dispatcher'->>'name' = 'async'
                and m.value > (r.config->'dispatcher'->>'maxStaleness')::int`,
  },
  {
    says: "a rollout that is settled holds no lease",
    broken: `select l.rollout_id, l.resource, r.outcome from pool_leases l join rollouts r on r.id = l.rollout_id
              where l.run_id = $1 and r.state = 'settled'`,
  },
  {
    says: "no sandbox outlives its rollout by more than its lease",
    broken: `select s.id, s.rollout_id, s.state, s.reason, a.ended_at, s.closed_at
               from sandboxes s join attempts a on a.rollout_id = s.rollout_id and a.attempt = s.attempt
              where s.run_id = $1 and s.state <> 'kept'
                and coalesce(s.closed_at, now()) > a.ended_at + ${sandboxLeaseMs + sweptWithinMs} * interval '1 millisecond'`,
  },
  {
    says: "a step ends once",
    broken: `select body->>'stepId' as step, count(*) as times from events
              where run_id = $1 and type = 'step-status' and body->>'to' in ('done', 'cancelled', 'failed')
              group by 1 having count(*) > 1`,
  },
  {
    // But where somebody set the run back: from there they count on.
    says: "versions that serve never go back",
    broken: `select seq, version, before from (
               select seq, type, (body->>'version')::int as version,
                      lag((body->>'version')::int) over (order by seq) as before
                 from events where run_id = $1 and type in ('version-serving', 'run-restored')) v
              where version < before and type = 'version-serving'`,
  },
  {
    says: "a run that is over holds no lease and has no rollout under way",
    broken: `select r.id, r.status from runs r
              where r.id = $1 and r.status in ('completed', 'stopped', 'failed')
                and (exists (select 1 from pool_leases l where l.run_id = r.id)
                     or exists (select 1 from rollouts o where o.run_id = r.id and o.state <> 'settled'))`,
  },
  {
    says: "infrastructure attempts are bounded",
    broken: `select id, attempt, infrastructure_failures from rollouts where run_id = $1 and infrastructure_failures > 3`,
  },
];

const Peak = z.object({ stage: z.enum(["init", "run", "evaluate"]), peak: z.int() });

/** Broken rules of one run, with up to three of the rows that break each. */
export async function checkLog(pool: Pool, runId: string): Promise<string[]> {
  const found: string[] = [];
  for (const rule of rules) {
    const { rows } = await pool.query(rule.broken, [runId]);
    if (rows.length > 0) found.push(`${rule.says}: ${rows.length} broken, as ${JSON.stringify(rows.slice(0, 3))}`);
  }
  for (const { resource, used, leases } of await poolLedger(pool)) {
    found.push(`pool ${resource} counts ${used} used, it has ${leases} leases`);
  }
  return [...found, ...(await brokenBounds(pool, runId))];
}

/** Most rollouts of a stage at once, by their spans, against the run's bounds. */
async function brokenBounds(pool: Pool, runId: string): Promise<string[]> {
  const { rows: runs } = await pool.query("select config from runs where id = $1", [runId]);
  const { bounds } = RunConfig.parse(z.object({ config: z.unknown() }).parse(runs[0]).config).dispatcher;
  const { rows } = await pool.query(
    `with moves as (
       select stage, started_at as at, 1 as by from stage_spans where run_id = $1 and started_at is not null
       union all
       select stage, ended_at, -1 from stage_spans where run_id = $1 and started_at is not null and ended_at is not null
     ), counts as (
       select stage, sum(by) over (partition by stage order by at, by rows unbounded preceding) as here from moves
     )
     select stage, max(here)::int as peak from counts group by stage`,
    [runId],
  );
  return z
    .array(Peak)
    .parse(rows)
    .filter(({ stage, peak }) => peak > bounds[stage])
    .map(({ stage, peak }) => `${peak} rollouts were in stage ${stage} at once, at most ${bounds[stage]} may be`);
}
