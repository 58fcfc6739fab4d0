/**
 * Durations learned from recorded stages: lognormal, with instances that differ among themselves. An instance's own log-mean is
 * shrunk towards all others' by how little was seen of it (empirical Bayes for one-way random effects), so that one slow rollout
 * makes no slow instance. Pure and deterministic: what a rollout takes is a function of the seed and its key.
 */
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { NewGroup } from "@rolldeck/contracts/plan";
import { standardNormal } from "./normal.ts";
import type { RolloutKey, WorkOf } from "./rollout-work.ts";

/** A stage that came to its end. */
export interface RecordedStage {
  /** Position in config.taskSets. */
  readonly taskSet: number;
  readonly instanceIndex: number;
  readonly stage: Stage;
  /** Of its own work, without waiting; what is below a millisecond counts as one. */
  readonly ms: number;
  /** An init that made an environment of the run anew instead of opening a sandbox. Default false. */
  readonly reset?: boolean;
}

export interface StageFit {
  /** Of the logarithm of milliseconds. */
  readonly mean: number;
  readonly betweenDeviation: number;
  readonly withinDeviation: number;
  /** Shrunk log-mean and how uncertain it is, by instance. */
  readonly instances: ReadonlyMap<number, { readonly mean: number; readonly deviation: number }>;
  readonly seen: number;
}
/** By position in config.taskSets; a set that was never seen has what all others together have. */
export type DurationFit = readonly Readonly<Record<Stage, StageFit>>[];

/** @returns null when some stage was never seen */
export function fitDurations(recorded: readonly RecordedStage[], taskSets: number): DurationFit | null {
  const pooled = fitStages(recorded, null);
  if (pooled === null) return null;
  return Array.from(
    { length: taskSets },
    (_, taskSet) =>
      fitStages(
        recorded.filter((one) => one.taskSet === taskSet),
        pooled,
      ) ?? pooled,
  );
}

function fitStages(
  recorded: readonly RecordedStage[],
  fallback: Readonly<Record<Stage, StageFit>> | null,
): Readonly<Record<Stage, StageFit>> | null {
  const byStage = (stage: Stage): StageFit | null => {
    const own = recorded.filter((one) => one.stage === stage);
    if (own.length > 0) return fitStage(own);
    // What was seen of other sets' instances says nothing of this set's.
    return fallback === null ? null : { ...fallback[stage], instances: new Map() };
  };
  const [init, run, evaluate] = stages.map(byStage);
  return init && run && evaluate ? { init, run, evaluate } : null;
}

function fitStage(recorded: readonly RecordedStage[]): StageFit {
  const groups = new Map<number, number[]>();
  for (const { instanceIndex, ms } of recorded) {
    const logs = groups.get(instanceIndex) ?? [];
    logs.push(Math.log(Math.max(1, ms)));
    groups.set(instanceIndex, logs);
  }
  const { within, between } = variancesOf([...groups.values()]);
  const weightOf = (count: number): number => 1 / (between + within / count || 1);
  let weights = 0;
  let weighted = 0;
  for (const logs of groups.values()) {
    weights += weightOf(logs.length);
    weighted += weightOf(logs.length) * meanOf(logs);
  }
  const mean = weighted / weights;
  const instances = new Map(
    [...groups].map(([instance, logs]) => {
      const own = between === 0 ? 0 : between / (between + within / logs.length);
      return [instance, { mean: mean + own * (meanOf(logs) - mean), deviation: Math.sqrt(between * (1 - own)) }];
    }),
  );
  const deviations = { betweenDeviation: Math.sqrt(between), withinDeviation: Math.sqrt(within) };
  return { mean, ...deviations, instances, seen: recorded.length };
}

/** Analysis of variance, unbalanced: of rollouts of one instance, and of instances' own means. */
function variancesOf(groups: readonly (readonly number[])[]): { readonly within: number; readonly between: number } {
  const all = groups.flat();
  const total = all.length;
  const grand = meanOf(all);
  const inside = groups.reduce((sum, logs) => sum + squares(logs, meanOf(logs)), 0);
  const outside = groups.reduce((sum, logs) => sum + logs.length * (meanOf(logs) - grand) ** 2, 0);
  if (total < 2) return { within: 0, between: 0 };
  if (groups.length < 2) return { within: inside / (total - 1), between: 0 };
  if (total === groups.length) {
    // Each seen once: nothing tells the two apart, so each gets half.
    const half = outside / (total - 1) / 2;
    return { within: half, between: half };
  }
  const within = inside / (total - groups.length);
  const typical = (total - groups.reduce((sum, logs) => sum + logs.length ** 2, 0) / total) / (groups.length - 1);
  return { within, between: Math.max(0, (outside / (groups.length - 1) - within) / typical) };
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const squares = (values: readonly number[], mean: number): number =>
  values.reduce((sum, value) => sum + (value - mean) ** 2, 0);

/** Nothing was recorded: every instance alike, `ms` the mean of each stage, `deviation` of the logarithm. */
export function assumedDurations(
  ms: Readonly<Record<Stage, number>>,
  deviation: number,
  taskSets: number,
): DurationFit {
  const stage = (mean: number): StageFit => ({
    mean: Math.log(Math.max(1, mean)) - deviation ** 2 / 2,
    // Instances and rollouts differ as much.
    betweenDeviation: deviation / Math.SQRT2,
    withinDeviation: deviation / Math.SQRT2,
    instances: new Map(),
    seen: 0,
  });
  const fit = { init: stage(ms.init), run: stage(ms.run), evaluate: stage(ms.evaluate) };
  return Array.from({ length: taskSets }, () => fit);
}

/** Draws what rollouts take. @param limitsMs no stage takes longer; absent = no limit */
export function drawWork(fit: DurationFit, seed: number, limitsMs?: Readonly<Record<Stage, number>>): WorkOf {
  const draw = (stage: Stage, key: RolloutKey): number => {
    const fitted = fit[key.instance.taskSet]?.[stage];
    if (fitted === undefined) return 0;
    return Math.min(Math.exp(drawLog(fitted, seed, stage, key)), limitsMs?.[stage] ?? Number.POSITIVE_INFINITY);
  };
  return (key) => ({ initMs: draw("init", key), runMs: draw("run", key), evaluateMs: draw("evaluate", key) });
}

/** The logarithm of a stage's milliseconds: the instance's own place, and the rollout's around it. */
export function drawLog(fitted: StageFit, seed: number, stage: Stage, key: RolloutKey): number {
  const { instance, visit, sample, attempt } = key;
  const { mean, deviation } = centerOf(fitted, instance);
  return (
    mean +
    deviation * standardNormal(seed, stage, ...keyOf(instance)) +
    fitted.withinDeviation * standardNormal(seed, stage, ...keyOf(instance), visit, sample, attempt)
  );
}

/**
 * What a planner expects of an instance that it has seen before: geometric means, milliseconds. An instance that was recorded is
 * expected as it was fitted; of one that is only drawn the draw's own mean is expected, as after many rollouts of it.
 */
export function expectedOf(fit: DurationFit, seed: number, instance: NewGroup): Readonly<Record<Stage, number>> | null {
  const fitted = fit[instance.taskSet];
  if (fitted === undefined) return null;
  const of = (stage: Stage): number => {
    const recorded = fitted[stage].instances.get(instance.instanceIndex);
    if (recorded !== undefined) return Math.exp(recorded.mean);
    const { mean, deviation } = centerOf(fitted[stage], instance);
    return Math.exp(mean + deviation * standardNormal(seed, stage, ...keyOf(instance)));
  };
  return { init: of("init"), run: of("run"), evaluate: of("evaluate") };
}

const keyOf = ({ taskSet, split, instanceIndex }: NewGroup) => [taskSet, split, instanceIndex] as const;

/** Where an instance's log-durations lie, and how uncertain that is. */
const centerOf = ({ instances, mean, betweenDeviation }: StageFit, { instanceIndex }: NewGroup) =>
  instances.get(instanceIndex) ?? { mean, deviation: betweenDeviation };
