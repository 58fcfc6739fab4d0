/** The points of one train step, from its rollouts and what the trainer said. What is unknown is left out, never 0. */
import { enginePoints } from "@rolldeck/contracts/engine-metrics";
import { type MetricName, taskSetLabels } from "@rolldeck/contracts/metrics";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import type { StepRollout } from "@rolldeck/db/training/read-step-rollouts";
import type { StoredTrainingRow } from "@rolldeck/db/training/training-rows";
import { sharedMetrics } from "@rolldeck/rl/shared-metrics";
import { countBadCalls, sampledEntropy, setMetrics, stepMetrics } from "@rolldeck/rl/step-metrics";
import { type AppliedRows, updateSpec } from "./apply-rows.ts";
import { nativePoints } from "./native-points.ts";
import { sharedRow } from "./shared-rows.ts";
import { staleness } from "./staleness.ts";

export interface UpdateFacts {
  readonly claimed: Pick<
    ClaimedUpdate,
    "config" | "step" | "servingVersion" | "createdAtMs" | "gatheredAtMs" | "updateStartedAtMs"
  >;
  readonly rollouts: readonly StepRollout[];
  readonly rows: AppliedRows | null;
  /** The step's rows with what is stored of them by now. */
  readonly stored: readonly StoredTrainingRow[];
  /** Share of the tokens to be trained that the trainer's logprobs left out; null where nothing was corrected. */
  readonly leftOut: number | null;
  readonly optimMetrics: Readonly<Record<string, number>>;
  readonly machine: Readonly<Record<string, number>>;
  /** The database's clock. */
  readonly nowMs: number;
}

export function updateMetrics(facts: UpdateFacts) {
  const { claimed, rollouts, rows, stored, leftOut, optimMetrics, machine, nowMs } = facts;
  const lastSettledMs = rollouts.reduce((last, { settledAtMs }) => Math.max(last, settledAtMs), claimed.createdAtMs);
  const rate = updateSpec(claimed.config, { step: claimed.step, rows: stored }).learningRate;
  const whole = stepMetrics({
    purpose: "train",
    rollouts,
    entropy: sampledEntropy(rollouts.flatMap(({ trajectory }) => trajectory.segments)),
    badCalls: rollouts.reduce((sum, { trajectory }) => sum + countBadCalls(trajectory.turns), 0),
    logprobGap: rows?.logprobGap ?? null,
    trainer: {
      ...trainerPoints(rows, optimMetrics),
      "policy/learning-rate": rate,
      ...(leftOut === null ? {} : { "policy/left-out": leftOut }),
    },
    gatherSeconds: (lastSettledMs - claimed.createdAtMs) / 1000,
    updateSeconds: Math.max(nowMs - claimed.updateStartedAtMs, 0) / 1000,
  });
  const stale = staleness(rollouts, claimed.servingVersion ?? claimed.step - 1);
  return {
    ...nativePoints(claimed.config.backend.name, rows?.sums ?? {}, optimMetrics),
    ...enginePoints(machine),
    ...whole,
    ...stale,
    ...setMetrics("train", rollouts, taskSetLabels(claimed.config.taskSets)),
    ...sharedMetrics(stored.map(sharedRow), rollouts),
  };
}

function trainerPoints(rows: AppliedRows | null, optim: Readonly<Record<string, number>>) {
  const points: Partial<Record<MetricName, number>> = {};
  if (optim.grad_norm !== undefined) points["policy/grad-norm"] = optim.grad_norm;
  const { loss, trained_tokens: trained, clipped_tokens: clipped } = rows?.sums ?? {};
  if (rows?.kl != null) points["policy/kl"] = rows.kl;
  if (loss !== undefined) points["policy/loss"] = loss;
  if (clipped !== undefined && trained !== undefined && trained > 0) points["policy/clip-fraction"] = clipped / trained;
  return points;
}
