/** Held-out points of an evaluation: means over its scored rollouts; without any there is no point, never a 0. */
import { type AnyMetricName, setMetric, taskSetLabels } from "@rolldeck/contracts/metrics";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { writeMetrics } from "@rolldeck/db/training/write-metrics";
import { z } from "zod";

const Scores = z.object({
  /** Null: all sets together. */
  taskSet: z.int().nullable(),
  reward: z.number().nullable(),
  success: z.number().nullable(),
});

export async function writeEvaluateMetrics(
  pool: Pool,
  run: { readonly runId: string; readonly config: Pick<RunConfig, "taskSets"> },
  step: { readonly stepId: string; readonly step: number },
  more: Partial<Record<AnyMetricName, number>> = {},
): Promise<void> {
  const { rows } = await pool.query(
    `select g.task_set as "taskSet", avg(r.reward)::float8 as reward,
            (avg(r.success::int) filter (where r.reward is not null))::float8 as success
       from rollouts r join groups g on g.id = r.group_id
      where r.step_id = $1 and r.state = 'settled' group by grouping sets ((), (g.task_set))`,
    [step.stepId],
  );
  const labels = taskSetLabels(run.config.taskSets);
  const points: Partial<Record<AnyMetricName, number>> = { ...more };
  for (const { taskSet, reward, success } of z.array(Scores).parse(rows)) {
    const label = taskSet === null ? null : labels[taskSet];
    // With one set the whole says it all.
    if (label === undefined || (label !== null && labels.length < 2)) continue;
    const name = (metric: "evaluate/reward" | "evaluate/success") =>
      label === null ? metric : setMetric(metric, label);
    if (reward !== null) points[name("evaluate/reward")] = reward;
    if (success !== null) points[name("evaluate/success")] = success;
  }
  if (Object.keys(points).length > 0) await writeMetrics(pool, run.runId, step.step, points);
}
