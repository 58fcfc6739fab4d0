/** A run of several steps on the live engine, measured from its rows. Milliseconds of the database's clock. */
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { createRun } from "@rolldeck/db/runs/create-run";
import { z } from "zod";
import { untilCompleted } from "../agent/bench-scene.ts";

const Step = z.object({
  step: z.int(),
  /** Its first rollout waits, its last one is scored. */
  firstReadyAt: z.number(),
  lastScoredAt: z.number(),
  updateStartedAt: z.number(),
  endedAt: z.number(),
});
export type PlayedStep = z.infer<typeof Step>;

export interface Played {
  readonly steps: readonly PlayedStep[];
  /** Trained groups by their staleness: by the oldest version that a turn of theirs was sampled with. */
  readonly staleness: readonly number[];
}

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;

/** Launches the run and waits for its end. */
export async function play(pool: Pool, config: RunConfigInput, limitMs: number): Promise<Played> {
  const { runId } = await createRun(pool, { config: RunConfig.parse(config) });
  await untilCompleted({ pool }, runId, limitMs);
  const { rows } = await pool.query(
    `select s.step, ${ms("min(p.ready_at)")} as "firstReadyAt", ${ms("max(r.settled_at)")} as "lastScoredAt",
       ${ms("s.update_started_at")} as "updateStartedAt", ${ms("s.ended_at")} as "endedAt"
     from steps s join groups g on g.step_id = s.id and g.set_aside is null join rollouts r on r.group_id = g.id
       join stage_spans p on p.rollout_id = r.id
     where s.run_id = $1 and s.purpose = 'train' and s.state = 'done' group by s.id order by s.step`,
    [runId],
  );
  return { steps: z.array(Step).parse(rows), staleness: await stalenessOf(pool, runId) };
}

/** From the first rollout that waits to the last update. */
export function totalMs({ steps }: Played): number {
  return Math.max(...steps.map(({ endedAt }) => endedAt)) - Math.min(...steps.map(({ firstReadyAt }) => firstReadyAt));
}

async function stalenessOf(pool: Pool, runId: string): Promise<number[]> {
  const { rows } = await pool.query(
    `select age, count(*)::int as groups from (
       select s.step - 1 - min(t.policy_version) as age from steps s
         join groups g on g.step_id = s.id and g.set_aside is null join rollouts r on r.group_id = g.id
         join transitions t on t.rollout_id = r.id and t.attempt = r.attempt
       where s.run_id = $1 and s.purpose = 'train' and s.state = 'done' group by g.id, s.step) a group by age`,
    [runId],
  );
  const groups: number[] = [];
  for (const row of z.array(z.object({ age: z.int(), groups: z.int() })).parse(rows)) groups[row.age] = row.groups;
  return Array.from(groups, (count) => count ?? 0);
}
