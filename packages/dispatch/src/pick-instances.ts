/**
 * Which task instances a step takes. Invariants: deterministic in (config, sizes, step, purpose); a train step takes train
 * instances only and an evaluation held-out ones only; within an epoch of a task set no instance comes twice, and a set that is left
 * out of some steps goes on where it was; an evaluation measures every set, whichever are trained.
 */
import type { NewGroup, Purpose } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { apportion, apportionRound } from "./apportion.ts";
import { mixHash } from "./mix-hash.ts";
import { permute } from "./permute.ts";

/** Instances by split; null = endless. */
export interface SplitSizes {
  readonly train: number | null;
  readonly evaluate: number | null;
}

/** Indices of an endless set are drawn from this many. */
const endlessSize = 2 ** 31 - 1;
/** All runs measure on the same held-out instances, so that their charts compare. */
const heldOutKey = 0;

/**
 * @param sizes in the order of config.taskSets
 * @param step train: from 1; evaluate: any, every evaluation takes the same instances
 * @returns one entry per group; empty when the sets have no instance in this split
 */
export function pickInstances(
  config: RunConfig,
  sizes: readonly SplitSizes[],
  step: number,
  purpose: Purpose,
): NewGroup[] {
  return purpose === "train" ? pickTrain(config, sizes, step) : pickHeldOut(config, sizes);
}

/** Size of a set's split under its own limit; null = endless. */
function usableSize(config: RunConfig, sizes: readonly SplitSizes[], taskSet: number, purpose: Purpose): number | null {
  const size = sizes[taskSet]?.[purpose] ?? null;
  const limit = config.taskSets[taskSet]?.size ?? null;
  if (size === null || limit === null) return size ?? limit;
  return Math.min(size, limit);
}

function pickTrain(config: RunConfig, sizes: readonly SplitSizes[], asked: number): NewGroup[] {
  const perStep = config.algorithm.groupsPerStep;
  // One batch over and over is the first step's.
  const step = config.preflight === "overfit" ? 1 : asked;
  const drawn = config.taskSets.map(() => 0);
  for (const stage of stagesOf(config, sizes)) {
    const weights = stage.sets.map(({ weight }) => weight);
    const isLast = step < stage.end;
    if (weights.length === 0) {
      if (isLast) return [];
      continue;
    }
    const { counts, before } = apportionRound(perStep, weights, (isLast ? step : stage.end) - stage.start + 1);
    for (const [at, { taskSet }] of stage.sets.entries()) drawn[taskSet] = (drawn[taskSet] ?? 0) + (before[at] ?? 0);
    if (!isLast) continue;
    return stage.sets.flatMap(({ taskSet, size }, at) =>
      Array.from({ length: counts[at] ?? 0 }, (_, nth): NewGroup => {
        const index = drawIndex(config.seed, taskSet, (drawn[taskSet] ?? 0) + nth, size ?? endlessSize);
        return { taskSet, split: "train", instanceIndex: index };
      }),
    );
  }
  return [];
}

interface Stage {
  /** Its first step, and the first one after it. */
  readonly start: number;
  readonly end: number;
  /** Those that are trained in it and have instances. */
  readonly sets: readonly { readonly taskSet: number; readonly weight: number; readonly size: number | null }[];
}

/** Spans of steps in which the same task sets are trained, in order and without a gap from step 1 on; the last has no end. */
function stagesOf(config: RunConfig, sizes: readonly SplitSizes[]): Stage[] {
  const edges = config.taskSets.flatMap(({ fromStep, untilStep }) => [
    fromStep,
    ...(untilStep === null ? [] : [untilStep + 1]),
  ]);
  const starts = [...new Set([1, ...edges])].sort((a, b) => a - b);
  return starts.map((start, at) => ({
    start,
    end: starts[at + 1] ?? Number.POSITIVE_INFINITY,
    sets: config.taskSets.flatMap(({ weight, fromStep, untilStep }, taskSet) => {
      const size = usableSize(config, sizes, taskSet, "train");
      const isIn = fromStep <= start && start <= (untilStep ?? Number.POSITIVE_INFINITY);
      return isIn && size !== 0 ? [{ taskSet, weight, size }] : [];
    }),
  }));
}

/** The `drawn`-th instance of a set: every epoch is a permutation of its own. */
function drawIndex(seed: number, taskSet: number, drawn: number, size: number): number {
  const epoch = Math.floor(drawn / size);
  return permute(drawn % size, size, mixHash(seed, taskSet, epoch));
}

function pickHeldOut(config: RunConfig, sizes: readonly SplitSizes[]): NewGroup[] {
  const caps = config.taskSets.map((_, taskSet) => usableSize(config, sizes, taskSet, "evaluate"));
  const weights = config.taskSets.map(({ weight }) => weight);
  const counts = apportion(config.evaluation.samples, weights, caps);
  return counts.flatMap((count, taskSet) =>
    Array.from({ length: count }, (_, nth): NewGroup => {
      const size = caps[taskSet] ?? null;
      // A finite set may be sorted by topic: its first instances would not speak for it.
      const instanceIndex = size === null ? nth : permute(nth, size, heldOutKey);
      return { taskSet, split: "evaluate", instanceIndex };
    }),
  );
}
