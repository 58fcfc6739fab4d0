/**
 * Points of a step that an outside trainer drives: what its rollouts tell. What the trainer made of them it keeps to itself: no loss, no
 * gradient, no log-probabilities of its own, so those points are left out, never 0.
 */
import { taskSetLabels } from "@rolldeck/contracts/metrics";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { readStepRollouts } from "@rolldeck/db/training/read-step-rollouts";
import { writeMetrics } from "@rolldeck/db/training/write-metrics";
import { sharedMetrics } from "@rolldeck/rl/shared-metrics";
import { countBadCalls, sampledEntropy, setMetrics, stepMetrics } from "@rolldeck/rl/step-metrics";

/** @param step `createdAt`: database clock, milliseconds */
export async function writeDrivenMetrics(
  pool: Pool,
  run: { readonly runId: string; readonly config: Pick<RunConfig, "taskSets"> },
  step: { readonly stepId: string; readonly step: number; readonly createdAt: number },
  more: Partial<Record<"cost/total", number>> = {},
): Promise<void> {
  const rollouts = await readStepRollouts(pool, step.stepId);
  const lastSettledMs = rollouts.reduce((last, { settledAtMs }) => Math.max(last, settledAtMs), step.createdAt);
  const points = {
    ...more,
    ...stepMetrics({
      purpose: "train",
      rollouts,
      entropy: sampledEntropy(rollouts.flatMap(({ trajectory }) => trajectory.segments)),
      badCalls: rollouts.reduce((sum, { trajectory }) => sum + countBadCalls(trajectory.turns), 0),
      gatherSeconds: (lastSettledMs - step.createdAt) / 1000,
    }),
    ...setMetrics("train", rollouts, taskSetLabels(run.config.taskSets)),
    // Which of the rows it trains is the trainer's to say: none counts as trained here.
    ...sharedMetrics([], rollouts),
  };
  await writeMetrics(pool, run.runId, step.step, points);
}
