/**
 * Which task instances a step takes. Invariants: deterministic in (config, sizes, step, purpose); a train step takes train
 * instances only and an evaluation held-out ones only; within an epoch of a task set no instance comes twice.
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

function pickTrain(config: RunConfig, sizes: readonly SplitSizes[], step: number): NewGroup[] {
  const sets = config.taskSets.flatMap(({ weight }, taskSet) => {
    const size = usableSize(config, sizes, taskSet, "train");
    return size === 0 ? [] : [{ taskSet, weight, size }];
  });
  if (sets.length === 0) return [];
  const weights = sets.map(({ weight }) => weight);
  const { counts, before } = apportionRound(config.algorithm.groupsPerStep, weights, step);
  return sets.flatMap(({ taskSet, size }, at) =>
    Array.from({ length: counts[at] ?? 0 }, (_, nth): NewGroup => {
      const drawn = (before[at] ?? 0) + nth;
      return { taskSet, split: "train", instanceIndex: drawIndex(config.seed, taskSet, drawn, size ?? endlessSize) };
    }),
  );
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
