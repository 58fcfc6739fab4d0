/**
 * What the planner sees of a run: first the wake with the run, so that what rises later is another round's; then what it was granted,
 * and the rollouts with their groups, so that none is seen without the other, and only of steps that the first one showed.
 */
import { leaseMs } from "@rolldeck/contracts/jobs";
import { runStatuses, stepStates } from "@rolldeck/contracts/lifecycle";
import { type ResourceCounts, type RunSnapshot, resources } from "@rolldeck/contracts/plan";
import type { Split } from "@rolldeck/contracts/ports/task";
import { DispatcherChange, type RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { z } from "zod";
import { EngineLoad, gpuWorkerNameSql } from "../gpu-workers.ts";
import { withChange } from "../runs/change-dispatcher.ts";
import { keepConfig } from "../runs/read-config.ts";
import { ms } from "./milliseconds.ts";
import { readGrants } from "./pools.ts";
import { readStepsRollouts, type StepsRollouts } from "./read-steps-rollouts.ts";

/** What the snapshot needs to know of a task set. */
export interface TaskSetFacts {
  /** Instances of a split; null = endless. */
  size(split: Split): number | null;
  readonly sandbox: "none" | "process" | "image";
  /** Absent = no. */
  readonly gradeInPlace?: boolean;
}
/** Of each of the config's task sets, in their order; the worker opens them. */
export type TaskFacts = (config: RunConfig) => Promise<readonly TaskSetFacts[]>;

/** Steps that are over and still shown to the planner, of each purpose: it asks what came last. */
const recentSteps = 16;
/** Starts of the last minute that are shown, the newest: a rate is kept over a second or so. */
const mostStarts = 1024;

const runSql = `
select r.wake, ${ms("now()")} as now, r.status, r.config, r.serving_version, r.model_boot_id, r.prepare_failures, r.prepare_refusal, r.prepare_reason,
  ${ms("r.prepare_lease_until")} as prepare_lease_until, ${ms("r.started_at")} as started_at, r.sampled_tokens::float8 as sampled_tokens,
  ${ms("r.trainer_lease_until")} as trainer_lease_until,
  (select json_build_object('total', m.value, 'step', m.step) from metric_points m
    where m.run_id = r.id and m.name = 'cost/total' and m.value < 'Infinity' order by m.step desc limit 1) as cost,
  e.boot_id as backend_boot_id, e.load as engine,
  r.groups_drawn, r.dispatch, r.draining,
  case when r.run_limit is not null then
    json_build_object('limit', r.run_limit, 'since', ${ms("r.run_limit_since")}, 'reason', r.run_limit_reason) end as run_limit,
  case when ((r.config -> 'dispatcher') || coalesce(r.dispatch, '{}')) ->> 'startsPerSecond' is null then '{}' else array(
    (select ${ms("s.started_at")} from stage_spans s
      where s.run_id = r.id and s.stage = 'init' and s.started_at > now() - interval '1 minute'
      order by s.started_at desc limit ${mostStarts})
    union all
    -- Admitted, not claimed yet: admission set the lease.
    select ${ms("o.lease_until")} - ${leaseMs} from rollouts o
    where o.run_id = r.id and o.state = 'queued' and o.stage = 'init' and o.stage_started_at is null
  ) end as recent_starts,
  (select coalesce(json_object_agg(resource, n), '{}') from
    (select resource, count(*) as n from pool_leases where run_id = r.id group by resource) h) as held,
  (select coalesce(json_agg(json_build_object('stepId', s.id, 'purpose', s.purpose, 'step', s.step, 'state', s.state,
      'source', s.source, 'createdAt', ${ms("s.created_at")}, 'updateLeaseUntil', ${ms("s.lease_until")},
      'updateFailures', s.update_failures, 'updateReason', s.reason) order by s.created_at, s.step), '[]')
    from (
      select * from steps where run_id = r.id and state in ('gathering', 'updating')
      union (select * from steps where run_id = r.id and purpose = 'train' order by step desc limit ${recentSteps})
      union (select * from steps where run_id = r.id and purpose = 'evaluate' order by step desc limit ${recentSteps})
    ) s) as steps,
  (select coalesce(json_agg(json_build_object('batchId', b.id, 'trainerStep', b.trainer_step, 'request', b.request,
      'deadlineAt', ${ms("b.deadline_at")}) order by b.created_at, b.trainer_step), '[]')
    from batch_requests b where b.run_id = r.id and b.state = 'requested') as batches
from runs r
left join gpu_workers e on e.name = ${gpuWorkerNameSql("r")} and e.state = 'ready'
where r.id = $1`;

const time = z.number().nullable();
const RunRow = z.object({
  wake: z.int(),
  now: z.number(),
  status: z.enum(runStatuses),
  config: z.unknown(),
  serving_version: z.int().nullable(),
  model_boot_id: z.string().nullable(),
  prepare_failures: z.int(),
  prepare_refusal: z.string().nullable(),
  prepare_reason: z.string().nullable(),
  prepare_lease_until: time,
  started_at: time,
  sampled_tokens: z.number(),
  cost: z.object({ total: z.number(), step: z.int() }).nullable(),
  trainer_lease_until: time,
  backend_boot_id: z.string().nullable(),
  engine: EngineLoad.nullable(),
  groups_drawn: z.int(),
  dispatch: DispatcherChange.nullable(),
  draining: z.boolean(),
  run_limit: z.object({ limit: z.int(), since: z.number(), reason: z.string().nullable() }).nullable(),
  recent_starts: z.array(z.number()),
  held: z.partialRecord(z.enum(resources), z.int()),
  steps: z.array(
    z.object({
      stepId: z.string(),
      purpose: z.enum(["train", "evaluate"]),
      step: z.int(),
      state: z.enum(stepStates),
      source: z.enum(["planned", "driven"]),
      createdAt: z.number(),
      updateLeaseUntil: time,
      updateFailures: z.int(),
      updateReason: z.string().nullable(),
    }),
  ),
  batches: z.array(
    z.object({
      batchId: z.string(),
      trainerStep: z.int(),
      request: z.object({
        instances: z.array(z.object({ taskSet: z.int(), index: z.int() })),
        samples: z.int(),
      }),
      deadlineAt: time,
    }),
  ),
});
type RunRow = z.infer<typeof RunRow>;

export interface ReadSnapshot {
  readonly snapshot: RunSnapshot;
  /** Leases the run may hold in all. */
  readonly grants: ResourceCounts;
  readonly wake: number;
}

/** Null when there is no such run. */
export async function readSnapshot(pool: pg.Pool, runId: string, tasks: TaskFacts): Promise<ReadSnapshot | null> {
  const found = await pool.query({ name: "snapshot-run", text: runSql, values: [runId] });
  if (found.rows.length === 0) return null;
  const run = RunRow.parse(found.rows[0]);
  const open = run.steps.filter(({ state }) => state === "gathering" || state === "updating");
  const stepIds = open.map(({ stepId }) => stepId);
  const [rollouts, grants] = await Promise.all([readStepsRollouts(pool, stepIds), readGrants(pool, runId)]);
  const config = withChange(keepConfig(runId, run.config), run.dispatch);
  return { snapshot: snapshotOf(runId, { ...run, config }, rollouts, await tasks(config)), grants, wake: run.wake };
}

function snapshotOf(
  runId: string,
  run: RunRow & { readonly config: RunConfig },
  { rollouts, groups }: StepsRollouts,
  tasks: readonly TaskSetFacts[],
): RunSnapshot {
  const { config } = run;
  return {
    now: run.now,
    runId,
    status: run.status,
    config,
    servingVersion: run.serving_version,
    modelBootId: run.model_boot_id,
    backendBootId: run.backend_boot_id,
    prepareLeaseUntil: run.prepare_lease_until,
    prepareFailures: run.prepare_failures,
    prepareRefusal: run.prepare_refusal,
    prepareReason: run.prepare_reason,
    startedAt: run.started_at,
    sampledTokens: run.sampled_tokens,
    cost: run.cost,
    taskSizes: tasks.map((task, taskSet) => ({
      train: smaller(task.size("train"), config.taskSets[taskSet]?.size ?? null),
      evaluate: task.size("evaluate"),
    })),
    taskSandboxes: tasks.map(({ sandbox }) => sandbox),
    gradedInPlace: tasks.map(({ gradeInPlace }) => gradeInPlace ?? false),
    steps: run.steps,
    rollouts,
    groups,
    groupsDrawn: run.groups_drawn,
    recentStarts: run.recent_starts.sort((a, b) => a - b),
    engine: run.engine,
    runLimit: run.run_limit,
    draining: run.draining,
    batchRequests: run.batches.map(({ request, ...batch }) => ({
      ...batch,
      groups: request.instances.map(({ taskSet, index }) => ({ taskSet, split: "train", instanceIndex: index })),
      groupSize: request.samples,
    })),
    trainerLeaseUntil: run.trainer_lease_until,
    held: countsOf(run.held),
  };
}

/** The config may narrow a task set; null = endless. */
const smaller = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b);

const countsOf = (held: RunRow["held"]): ResourceCounts => ({
  sandbox: held.sandbox ?? 0,
  initSlot: held.initSlot ?? 0,
  runSlot: held.runSlot ?? 0,
  gradeSlot: held.gradeSlot ?? 0,
  gpu: held.gpu ?? 0,
});
