/** The learning rate of a step, from the run's config alone: a step that is repeated has the rate that it had. */
import type { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";

export type RateSchedule = Pick<AlgorithmConfig, "learningRate" | "warmupSteps" | "decay">;

/**
 * Linear to `learningRate` over the first `warmupSteps` steps, then constant, or falling so that 0 would come one step after the last.
 *
 * linear: lr · (n − i) / n; cosine: lr · (1 + cos(π · i / n)) / 2, for the i-th (from 0) of the n steps after the warm-up (SGDR,
 * Loshchilov and Hutter 2017, equation 5, one period, minimum 0).
 * @param step from 1
 * @param steps of the run
 * @returns above 0, at most `learningRate`
 */
export function learningRateAt(
  { learningRate, warmupSteps, decay }: RateSchedule,
  step: number,
  steps: number,
): number {
  if (step < warmupSteps) return (learningRate * step) / warmupSteps;
  if (decay === "constant" || step === warmupSteps) return learningRate;
  const falling = Math.max(steps, step) - warmupSteps;
  const done = (step - warmupSteps - 1) / falling;
  return learningRate * (decay === "linear" ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2);
}
