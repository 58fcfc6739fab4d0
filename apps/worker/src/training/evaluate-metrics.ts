/** Held-out points of an evaluation: means over its scored rollouts; without any there is no point, never a 0. */
import type { MetricName } from "@rolldeck/contracts/metrics";
import type { Pool } from "@rolldeck/db/connect";
import { writeMetrics } from "@rolldeck/db/training/write-metrics";
import { z } from "zod";

const Scores = z.object({ scored: z.int(), reward: z.number().nullable(), success: z.number().nullable() });

export async function writeEvaluateMetrics(
  pool: Pool,
  runId: string,
  step: { readonly stepId: string; readonly step: number },
): Promise<void> {
  const { rows } = await pool.query(
    `select count(reward)::int as scored, avg(reward)::float8 as reward,
            (avg(success::int) filter (where reward is not null))::float8 as success
       from rollouts where step_id = $1 and state = 'settled'`,
    [step.stepId],
  );
  const scores = Scores.parse(rows[0]);
  if (scores.scored === 0) return;
  const points: Partial<Record<MetricName, number>> = {};
  if (scores.reward !== null) points["evaluate/reward"] = scores.reward;
  if (scores.success !== null) points["evaluate/success"] = scores.success;
  await writeMetrics(pool, runId, step.step, points);
}
