/**
 * Groups and their waiting rollouts as rows, for whatever makes them: a new step or one that gets more. What is known of an
 * instance's durations is looked up with them, before anything is locked.
 */
import { createHash } from "node:crypto";
import type { NewGroup, Purpose } from "@rolldeck/contracts/plan";
import { newId } from "../new-id.ts";

export type NamedGroup = NewGroup & {
  readonly task: string;
  readonly instanceId: string;
  /** The group that was set aside for this one. */
  readonly replaces?: string | null;
};

/** Where in a run something is drawn: `step 3`, or for groups that came later the number of the draw. */
export interface DrawnPlace {
  readonly seed: number;
  readonly purpose: Purpose;
  readonly step: number | string;
}

/** Seed of one rollout: the same for the same place of the same run seed, so that runs can be compared. 31 bits. */
export function rolloutSeed(of: DrawnPlace & { readonly group: NewGroup; readonly sample: number }): number {
  const { seed, purpose, step, group, sample } = of;
  const place = [seed, purpose, step, group.taskSet, group.split, group.instanceIndex, sample].join(" ");
  return createHash("sha256").update(place).digest().readUInt32LE(0) >>> 1;
}

/**
 * Values for the parameters of `freshGroups` and `putGroups`.
 * @param placeOf of the nth group: two of one instance must not begin alike
 */
export function groupValues(
  groups: readonly NamedGroup[],
  groupSize: number,
  placeOf: (nth: number) => DrawnPlace,
): unknown[] {
  const rows = groups.map((group, position) => ({ ...group, id: newId(), position }));
  const rollouts = rows.flatMap((group, nth) =>
    Array.from({ length: groupSize }, (_, sample) => ({
      id: newId(),
      groupId: group.id,
      sample,
      seed: rolloutSeed({ ...placeOf(nth), group, sample }),
    })),
  );
  return [
    rows.map((group) => group.id),
    rows.map((group) => group.position),
    rows.map((group) => group.taskSet),
    rows.map((group) => group.task),
    rows.map((group) => group.split),
    rows.map((group) => group.instanceIndex),
    rows.map((group) => group.instanceId),
    rows.map((group) => group.replaces ?? null),
    rollouts.map((rollout) => rollout.id),
    rollouts.map((rollout) => rollout.groupId),
    rollouts.map((rollout) => rollout.sample),
    rollouts.map((rollout) => rollout.seed),
  ];
}

const types = ["text", "int", "int", "text", "text", "int", "text", "text", "text", "text", "int", "int"];
const parameters = (first: number, from: number, to: number): string =>
  types
    .slice(from, to)
    .map((type, at) => `$${first + from + at}::${type}[]`)
    .join(", ");

/** Rollouts whose durations are looked at, and the newest groups of the instance in which they are looked for. */
const lookBack = 32;

/** Geometric means by stage over what completed before with the same model; null where a stage was never seen. */
const history = `
select case when count(*) = 3 then jsonb_object_agg(stage, round(mean)) end as expected_ms from (
  select s.stage, exp(avg(ln(greatest(extract(epoch from s.ended_at - s.started_at)::float8 * 1000, 1)))) as mean
  from (
    select r.id, r.attempt from (
      select o.id from groups o join runs u on u.id = o.run_id
      where o.task = i.task and o.instance_id = i.instance_id and u.config -> 'model' ->> 'name' = i.model
      order by o.id desc limit ${lookBack}
    ) o join rollouts r on r.group_id = o.id
    where r.outcome = 'completed' order by r.settled_at desc limit ${lookBack}
  ) r join stage_spans s on s.rollout_id = r.id and s.attempt = r.attempt
  where s.started_at is not null and s.ended_at is not null
  group by s.stage
) stages`;

/**
 * CTEs `fresh` and `learned`; whoever locks a row first reads `(select count(*) from learned)`.
 * @param first number of the first parameter @param runId SQL of the run's id
 */
export const freshGroups = (first: number, runId: string): string => `
fresh as materialized (
  select * from unnest(${parameters(first, 0, 8)})
    as g (id, position, task_set, task, split, instance_index, instance_id, replaces)
),
learned as materialized (
  select i.task, i.instance_id, h.expected_ms
  from (
    select distinct f.task, f.instance_id, r.config -> 'model' ->> 'name' as model from fresh f, runs r where r.id = ${runId}
  ) i left join lateral (${history}) h on true
)`;

/** CTEs that end in `put_groups`, `put_attempts` and `put_spans`, for the one row of `step` (id, run_id, base: first position). */
export const putGroups = (first: number): string => `
put_groups as (
  insert into groups (id, run_id, step_id, position, task_set, task, split, instance_index, instance_id, replaces, expected_ms)
  select f.id, s.run_id, s.id, s.base + f.position, f.task_set, f.task, f.split, f.instance_index, f.instance_id, f.replaces,
    l.expected_ms
  from step s, fresh f join learned l using (task, instance_id)
  returning replaces
),
put_rollouts as (
  insert into rollouts (id, run_id, step_id, group_id, sample, seed)
  select r.id, s.run_id, s.id, r.group_id, r.sample, r.seed
  from step s, unnest(${parameters(first, 8, 12)}) as r (id, group_id, sample, seed)
  returning id, run_id
),
put_attempts as (
  insert into attempts (rollout_id, attempt) select id, 1 from put_rollouts returning 1
),
put_spans as (
  insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at) select id, 1, 'init', run_id, now() from put_rollouts
  returning 1
)`;
