/**
 * What must hold of a completed run whose groups start ahead of their update, read from its rows and event log: each broken rule as
 * a sentence. An empty list is the pass.
 */
import { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { z } from "zod";

interface Rule {
  readonly says: string;
  /** Rows that break it; `run`, `ahead` (staleness bound), `per_step`, `group_size` and `steps` are those of the run. */
  readonly broken: string;
}

/** Groups that an update trained, with the version that the learner had before it. */
const trained = `trained as (
  select g.id, s.id as step_id, s.step, s.step - 1 as learner from groups g join steps s on s.id = g.step_id
   where s.run_id = (select run from of) and s.purpose = 'train' and s.state = 'done' and g.set_aside is null
), turns as (
  select t.id as group_id, t.step, t.learner, r.id as rollout_id, r.first_version, x.turn, x.policy_version
    from trained t join rollouts r on r.group_id = t.id join transitions x on x.rollout_id = r.id and x.attempt = r.attempt
)`;

const rules: readonly Rule[] = [
  {
    says: "every step of the budget is done, with a whole batch of groups",
    broken: `select wanted.step, count(t.id) as groups from of, generate_series(1, of.steps) wanted (step)
               left join trained t on t.step = wanted.step group by wanted.step, of.per_step having count(t.id) <> of.per_step`,
  },
  {
    says: "every group is trained or was set aside",
    broken: `select g.id, s.step, s.state from groups g join steps s on s.id = g.step_id, of
              where g.run_id = of.run and g.set_aside is null and g.id not in (select id from trained)`,
  },
  {
    says: "of a trained group all rollouts are scored",
    broken: `select t.id, count(r.id) from trained t cross join of left join rollouts r on r.group_id = t.id and r.reward is not null
              group by t.id, of.group_size having count(r.id) <> of.group_size`,
  },
  {
    says: "each rollout of a trained group is trained by its group's step, and by no other",
    broken: `select r.id, t.step, array_agg(distinct w.step_id) as by_steps from trained t join rollouts r on r.group_id = t.id
               left join training_rows w on w.rollout_id = r.id
              group by r.id, t.step, t.step_id having array_agg(distinct w.step_id) <> array[t.step_id]`,
  },
  {
    says: "no rollout is trained whose group was set aside",
    broken: `select w.rollout_id, g.set_aside from training_rows w join rollouts r on r.id = w.rollout_id
               join groups g on g.id = r.group_id, of where w.run_id = of.run and g.set_aside is not null`,
  },
  {
    says: "no trained turn lies further behind the learner than the bound",
    broken: `select turns.* from turns, of where learner - policy_version > of.ahead`,
  },
  {
    says: "no trained turn is ahead of the learner",
    broken: `select * from turns where policy_version > learner`,
  },
  {
    says: "a rollout's first version is that of its first turn",
    broken: `select * from turns where turn = 0 and first_version is distinct from policy_version`,
  },
  {
    says: "versions never go back within a rollout",
    broken: `select * from (select *, lag(policy_version) over (partition by rollout_id order by turn) as before from turns) v
              where before > policy_version`,
  },
  {
    says: "the chart of the greatest staleness shows what was trained",
    broken: `select s.step, s.age, p.value from of, (
               select step, max(learner - first_version) as age from turns group by step) s
               left join metric_points p on p.run_id = (select run from of) and p.name = 'staleness/max' and p.step = s.step
              where p.value is distinct from s.age`,
  },
  {
    // Groups that an update leaves to the next step are told by that step's creation, and were drawn before.
    says: "groups accepted and running never outnumber (bound + step) × batch",
    broken: `select * from (
               select e.seq, sum(m.by) over w as groups, 1 + sum(m.done) over w as step
                 from of, events e, lateral (select
                   case when e.type = 'groups-added' then (e.body->>'groups')::int
                        when e.type = 'group-set-aside' then -1
                        when e.type = 'step-created' and not exists (
                          select from events o where o.run_id = e.run_id and o.type = 'groups-moved'
                             and o.body->>'toStepId' = e.body->>'stepId') then (e.body->>'groups')::int
                        else 0 end as by,
                   (e.type = 'step-status' and e.body->>'to' in ('done', 'failed'))::int as done) m
                where e.run_id = of.run window w as (order by e.seq)) s, of
              where groups > (of.ahead + s.step) * of.per_step`,
  },
];

/** Broken rules, with up to three of the rows that break each. */
export async function checkAsync(pool: Pool, runId: string): Promise<string[]> {
  const { rows: runs } = await pool.query("select config from runs where id = $1", [runId]);
  const { config } = z.object({ config: RunConfig }).parse(runs[0]);
  const { algorithm, dispatcher, budget } = config;
  const of = [runId, dispatcher.maxStaleness, algorithm.groupsPerStep, algorithm.groupSize, budget.steps];
  const found: string[] = [];
  for (const { says, broken } of rules) {
    const { rows } = await pool.query(
      `with of as (select $1::text as run, $2::int as ahead, $3::int as per_step, $4::int as group_size, $5::int as steps),
       ${trained} ${broken}`,
      of,
    );
    if (rows.length > 0) found.push(`${says}: ${rows.length} broken, as ${JSON.stringify(rows.slice(0, 3))}`);
  }
  return found;
}
