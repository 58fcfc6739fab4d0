/** What one step of a simulation took, and how sure one may be of it after several seeds. */
import { mixHash } from "../mix-hash.ts";
import type { Simulation } from "./simulation.ts";

/**
 * Milliseconds per step: from one step's end to the next, the first from the run's start. Where steps overlap, a run's beginning
 * (nothing under way yet) says little of the rest, so the first step is left out once there are three.
 */
export function stepMsOf({ steps, makespanMs }: Simulation): number {
  const ends = steps
    .filter(({ purpose, endedAt }) => purpose === "train" && endedAt !== null)
    .map(({ endedAt }) => endedAt ?? 0)
    .sort((a, b) => a - b);
  const [first] = ends;
  const last = ends.at(-1);
  if (first === undefined || last === undefined) return makespanMs;
  return ends.length >= 3 ? (last - first) / (ends.length - 1) : last / ends.length;
}

export interface Interval {
  readonly mean: number;
  /** Ends of the 95 % interval; the mean itself where there is one value only. */
  readonly low: number;
  readonly high: number;
}

const resamples = 1_000;

/** Percentile bootstrap of what `statistic` makes of the values: drawn again with replacement, by a fixed seed. */
export function bootstrap(count: number, statistic: (chosen: readonly number[]) => number): Interval {
  const all = Array.from({ length: count }, (_, at) => at);
  const drawn = Array.from({ length: resamples }, (_, nth) =>
    statistic(all.map((at) => Math.floor((mixHash("bootstrap", nth, at) / 2 ** 32) * count))),
  ).sort((a, b) => a - b);
  const at = (share: number): number => drawn[Math.round(share * (resamples - 1))] ?? 0;
  return { mean: statistic(all), low: at(0.025), high: at(0.975) };
}

export const meanInterval = (values: readonly number[]): Interval =>
  bootstrap(values.length, (chosen) => chosen.reduce((sum, at) => sum + (values[at] ?? 0), 0) / chosen.length);

/** Relative change of the mean, −0.18 = 18 % less. The same seeds were played on both sides, so they are drawn together. */
export const changeInterval = (before: readonly number[], after: readonly number[]): Interval =>
  bootstrap(before.length, (chosen) => {
    const sum = (values: readonly number[]): number => chosen.reduce((total, at) => total + (values[at] ?? 0), 0);
    return sum(after) / sum(before) - 1;
  });
