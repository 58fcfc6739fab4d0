/** The points of one train step, from its rollouts and what the trainer said. What is unknown is left out, never 0. */
import { type MetricName, taskSetLabels } from "@rolldeck/contracts/metrics";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import type { StepRollout } from "@rolldeck/db/training/read-step-rollouts";
import { countBadCalls, sampledEntropy, setMetrics, stepMetrics } from "@rolldeck/rl/step-metrics";
import type { AppliedRows } from "./apply-rows.ts";
import { staleness } from "./staleness.ts";

export interface UpdateFacts {
  readonly claimed: Pick<
    ClaimedUpdate,
    "config" | "step" | "servingVersion" | "createdAtMs" | "gatheredAtMs" | "updateStartedAtMs"
  >;
  readonly rollouts: readonly StepRollout[];
  readonly rows: AppliedRows | null;
  readonly optimMetrics: Readonly<Record<string, number>>;
  /** The database's clock. */
  readonly nowMs: number;
}

export function updateMetrics({ claimed, rollouts, rows, optimMetrics, nowMs }: UpdateFacts) {
  const lastSettledMs = rollouts.reduce((last, { settledAtMs }) => Math.max(last, settledAtMs), claimed.createdAtMs);
  const whole = stepMetrics({
    purpose: "train",
    rollouts,
    entropy: sampledEntropy(rollouts.flatMap(({ trajectory }) => trajectory.segments)),
    badCalls: rollouts.reduce((sum, { trajectory }) => sum + countBadCalls(trajectory.turns), 0),
    logprobGap: rows?.logprobGap ?? null,
    trainer: trainerPoints(rows, optimMetrics),
    gatherSeconds: (lastSettledMs - claimed.createdAtMs) / 1000,
    updateSeconds: Math.max(nowMs - claimed.updateStartedAtMs, 0) / 1000,
  });
  const stale = staleness(rollouts, claimed.servingVersion ?? claimed.step - 1);
  return { ...whole, ...stale, ...setMetrics("train", rollouts, taskSetLabels(claimed.config.taskSets)) };
}

function trainerPoints(rows: AppliedRows | null, optim: Readonly<Record<string, number>>) {
  const points: Partial<Record<MetricName, number>> = {};
  if (optim.grad_norm !== undefined) points["policy/grad-norm"] = optim.grad_norm;
  const { loss, trained_tokens: trained, clipped_tokens: clipped } = rows?.sums ?? {};
  if (loss !== undefined) points["policy/loss"] = loss;
  if (clipped !== undefined && trained !== undefined && trained > 0) points["policy/clip-fraction"] = clipped / trained;
  return points;
}
