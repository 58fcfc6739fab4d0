/**
 * The charted numbers of one step, by the definitions in contracts. Invariants: a metric that has no samples is left out,
 * never 0 and never NaN; token counts are of what is stored; unscored rollouts enter no reward metric.
 */

import type { Ending } from "@rolldeck/contracts/endings";
import { endingRule } from "@rolldeck/contracts/endings";
import type { RolloutOutcome } from "@rolldeck/contracts/lifecycle";
import { type MetricName, metricNames, type SetMetricName, setMetric } from "@rolldeck/contracts/metrics";
import type { Purpose } from "@rolldeck/contracts/plan";
import type { Segment, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";
import type { UpdateRow } from "./build-update.ts";
import { isScored, isZeroVariance } from "./group-advantages.ts";
import { decodeMask } from "./mask-reasons.ts";
import { positionsOf, segmentOffsets, type TrajectoryTokens } from "./trajectory-tokens.ts";

export interface SettledRollout {
  readonly groupId: string;
  readonly outcome: RolloutOutcome;
  readonly ending: Ending | null;
  readonly reward: number | null;
  readonly success: boolean | null;
  readonly turns: number;
  readonly sampledTokens: number;
}
export interface StepFacts {
  readonly purpose: Purpose;
  readonly rollouts: readonly SettledRollout[];
  /** Sums over sampled tokens (`sampledEntropy`), when the trajectories were read. */
  readonly entropy?: { readonly sum: number; readonly tokens: number };
  /** From `countBadCalls`, over all rollouts, when the trajectories were read. */
  readonly badCalls?: number;
  /** From `logprobGap`; null when nothing was trained. */
  readonly logprobGap?: number | null;
  /** What the backend reported, by metric name; names that are not charted are left out. */
  readonly trainer?: Readonly<Partial<Record<MetricName, number>>>;
  readonly gatherSeconds?: number;
  readonly updateSeconds?: number;
}

/** Values by metric name; only finite ones. */
export function stepMetrics(facts: StepFacts): Partial<Record<MetricName, number>> {
  const values: Partial<Record<MetricName, number | null>> =
    facts.purpose === "evaluate"
      ? { "evaluate/reward": meanReward(facts.rollouts), "evaluate/success": successRate(facts.rollouts) }
      : { ...trainMetrics(facts), ...facts.trainer };
  const kept: Partial<Record<MetricName, number>> = {};
  for (const name of metricNames) {
    const value = values[name];
    if (value !== null && value !== undefined && Number.isFinite(value)) kept[name] = value;
  }
  return kept;
}

/**
 * The same numbers for each task set of a step that has rollouts of several; empty for a run of one set.
 * @param labels of the run's task sets, in their order
 */
export function setMetrics(
  purpose: Purpose,
  rollouts: readonly (SettledRollout & { readonly taskSet: number })[],
  labels: readonly string[],
): Partial<Record<SetMetricName, number>> {
  const kept: Partial<Record<SetMetricName, number>> = {};
  if (labels.length < 2) return kept;
  for (const [taskSet, label] of labels.entries()) {
    const own = rollouts.filter((rollout) => rollout.taskSet === taskSet);
    const turns = own.reduce((sum, rollout) => sum + rollout.turns, 0);
    const values =
      purpose === "evaluate"
        ? ([
            ["evaluate/reward", meanReward(own)],
            ["evaluate/success", successRate(own)],
          ] as const)
        : ([
            ["reward/mean", meanReward(own)],
            ["reward/success", successRate(own)],
            ["rollouts/turns", ratio(turns, own.length)],
          ] as const);
    for (const [metric, value] of values) {
      if (value !== null && Number.isFinite(value)) kept[setMetric(metric, label)] = value;
    }
  }
  return kept;
}

function trainMetrics(facts: StepFacts): Partial<Record<MetricName, number | null>> {
  const { rollouts, gatherSeconds, entropy } = facts;
  const sampledTokens = rollouts.reduce((sum, rollout) => sum + rollout.sampledTokens, 0);
  const groups = [...new Set(rollouts.map((rollout) => rollout.groupId))].map((groupId) =>
    rollouts.filter((rollout) => rollout.groupId === groupId).map(scoredReward),
  );
  return {
    "reward/mean": meanReward(rollouts),
    "reward/success": successRate(rollouts),
    "policy/entropy": entropy === undefined ? null : ratio(entropy.sum, entropy.tokens),
    "policy/logprob-gap": facts.logprobGap ?? null,
    "groups/zero-variance": ratio(groups.filter(isZeroVariance).length, groups.length),
    "rollouts/turns": ratio(
      rollouts.reduce((sum, rollout) => sum + rollout.turns, 0),
      rollouts.length,
    ),
    "rollouts/sampled-tokens": ratio(sampledTokens, rollouts.length),
    "rollouts/cut": ratio(rollouts.filter(isCut).length, rollouts.length),
    "rollouts/no-finish": ratio(rollouts.filter(({ ending }) => ending === "turn_limit").length, rollouts.length),
    "rollouts/bad-calls": facts.badCalls === undefined ? null : ratio(facts.badCalls, rollouts.length),
    "rollouts/failed": ratio(rollouts.filter((rollout) => rollout.outcome === "failed").length, rollouts.length),
    "throughput/tokens-per-second": gatherSeconds === undefined ? null : ratio(sampledTokens, gatherSeconds),
    "time/gather": gatherSeconds ?? null,
    "time/update": facts.updateSeconds ?? null,
  };
}

const ratio = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);
const isCut = ({ ending }: SettledRollout): boolean => ending !== null && endingRule(ending).kind === "cut";

/** The reward if the rollout counts in the baseline, else null. */
const scoredReward = ({ ending, reward }: SettledRollout): number | null =>
  ending !== null && endingRule(ending).inBaseline && isScored(reward) ? reward : null;

function meanReward(rollouts: readonly SettledRollout[]): number | null {
  const rewards = rollouts.map(scoredReward).filter((reward) => reward !== null);
  return ratio(
    rewards.reduce((sum, reward) => sum + reward, 0),
    rewards.length,
  );
}

function successRate(rollouts: readonly SettledRollout[]): number | null {
  const scored = rollouts.filter((rollout) => scoredReward(rollout) !== null);
  return ratio(scored.filter((rollout) => rollout.success === true).length, scored.length);
}

const badCallCodes: readonly string[] = ["unknown_tool", "bad_arguments"];

/** Calls that could not run, and turns in which no call could be read. */
export function countBadCalls(
  turns: readonly Pick<
    TurnRecord & { readonly results: readonly (ToolResult | null)[] },
    "calls" | "parseError" | "stopReason" | "results"
  >[],
): number {
  return turns.reduce((sum, { calls, parseError, stopReason, results }) => {
    const unreadable = parseError !== null && calls.length === 0 && stopReason === "stop";
    const refused = results.filter((result) => badCallCodes.includes(result?.error?.code ?? ""));
    return sum + refused.length + (unreadable ? 1 : 0);
  }, 0);
}

/** Σ −logprob and count over sampled tokens with a finite logprob: divide for the mean, in nats per token. */
export function sampledEntropy(segments: Iterable<Segment>): { sum: number; tokens: number } {
  const total = { sum: 0, tokens: 0 };
  for (const segment of segments) {
    for (const logprob of segment.logprobs ?? []) {
      if (!Number.isFinite(logprob)) continue;
      total.sum -= logprob;
      total.tokens += 1;
    }
  }
  return total;
}

/**
 * Largest |trainer − sampler| over the trained tokens of one row, nats; null when the row trains none.
 * @param trainerLogprobs one per token after the first, as the backend returned them
 */
export function logprobGap(
  row: Pick<UpdateRow, "ranges" | "mask">,
  trajectory: TrajectoryTokens,
  trainerLogprobs: readonly number[],
): number | null {
  const offsets = segmentOffsets(trajectory.segments);
  const mask = decodeMask(row.mask);
  let gap: number | null = null;
  let t = 0;
  let index = 0;
  for (const position of positionsOf(row.ranges)) {
    const trained = mask[t] === null && t > 0;
    t += 1;
    if (!trained) continue;
    while (position >= (offsets[index + 1] ?? Number.POSITIVE_INFINITY)) index += 1;
    while (position < (offsets[index] ?? 0)) index -= 1;
    const sampler = trajectory.segments[index]?.logprobs?.[position - (offsets[index] ?? 0)];
    const trainer = trainerLogprobs[t - 2];
    if (sampler === undefined || trainer === undefined)
      throw new RangeError(`no logprobs for trained token ${position}`);
    gap = Math.max(gap ?? 0, Math.abs(trainer - sampler));
  }
  return gap;
}
