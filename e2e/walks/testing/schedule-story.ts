/** Two runs that share pools: one with a step that is over and one under way, one of another project beside it, and one that has not begun. */
import { supervisedGpuWorker } from "@rolldeck/db/gpu-workers";
import { seedEvents, seedRun } from "@rolldeck/db/testing/seed-run";
import { seedSchedule } from "@rolldeck/db/testing/seed-schedule";
import type pg from "pg";

export interface ScheduleStory {
  readonly runId: string;
  readonly other: string;
  readonly fresh: string;
  /** Of the step that is under way, by group and sample. */
  readonly rolloutIds: readonly string[];
}

const bounds = { init: 12, run: 24, evaluate: 8 };

/** Every rollout in flight holds what its stage takes. */
const leaseSql = `
  insert into pool_leases (resource, rollout_id, run_id, attempt, until)
  select l.resource, r.id, r.run_id, r.attempt, r.stage
  from rollouts r, lateral (
    select case r.stage when 'init' then 'initSlot' when 'run' then 'runSlot' else 'gradeSlot' end
    union all select 'sandbox') l (resource)
  where r.state = 'active' and r.run_id = any($1)`;

export async function seedScheduleStory(pool: pg.Pool): Promise<ScheduleStory> {
  const dispatcher = { bounds };
  const runId = await seedRun(pool, { config: { name: "mend the encoder, pipeline", project: "north", dispatcher } });
  await seedEvents(pool, runId, 1);
  // Over before the next one began.
  await seedSchedule(pool, runId, { step: 1, groups: 12, groupSize: 8, bounds, sandboxes: true, elapsedS: 360 });
  const shape = { groups: 16, groupSize: 8, bounds, sandboxes: true };
  const { rolloutIds } = await seedSchedule(pool, runId, { ...shape, step: 2, elapsedS: 95 });
  const other = await seedRun(pool, {
    config: { name: "key chain, GRPO", project: "south", dispatcher: { bounds, weight: 2, priority: 3 } },
  });
  await seedSchedule(pool, other, { step: 1, groups: 6, groupSize: 8, bounds, elapsedS: 30 });
  const fresh = await seedRun(pool, { config: { name: "not begun" } });
  await pool.query(leaseSql, [[runId, other]]);
  await pool.query("update runs set started_at = now() - interval '10 minutes' where id = $1", [runId]);
  // A model serves: what waits, waits for slots.
  await pool.query("update runs set serving_version = 1, model_boot_id = 'boot' where id = any($1)", [[runId, other]]);
  await pool.query("insert into gpu_workers (name, state, boot_id) values ($1, 'ready', 'boot')", [
    supervisedGpuWorker,
  ]);
  await pool.query("update pools p set used = (select count(*) from pool_leases l where l.resource = p.resource)");
  await pool.query("update pools set size = 96, evaluation_reserve = 8 where resource = 'sandbox'");
  await pool.query("update pools set size = 64 where resource in ('runSlot', 'initSlot')");
  await pool.query("update pools set size = 24 where resource = 'gradeSlot'");
  return { runId, other, fresh, rolloutIds };
}
