/**
 * The two workloads that dispatchers are measured on, at real scale. Durations are a function of (seed, instance, visit, sample,
 * attempt), so that the live engine and the simulator play the very same ones in whatever order rollouts begin.
 *
 * Paper: 64 instances × 8. Seconds: init 200·e^{.4z₁}; run min(1000, 350·e^{.4u+.3z₂}); evaluate 200·e^{.4v+.3z₃}; u and v are the
 * instance's own, z₁, z₂, z₃ the rollout's; all standard normal (Box–Muller).
 *
 * Anchor: 64 × 8, every stage lognormal with σ 0.6 around means of 0.6, 6 and 2.7 s, independently. These are the means that
 * give its two limits: 9.3/6 = 1.55 in steady state, and 1.42 with 512 rollouts of σ 0.
 */
import type { ResourceCounts } from "@rolldeck/contracts/plan";
import { standardNormal } from "../src/simulator/normal.ts";
import type { RolloutKey, WorkOf } from "../src/simulator/rollout-work.ts";

export interface Workload {
  readonly groups: number;
  readonly groupSize: number;
  readonly bounds: { readonly init: number; readonly run: number; readonly evaluate: number };
  /** Above every stage of it: no rollout is given up for its length. */
  readonly stageTimeoutMs: { readonly init: number; readonly run: number; readonly evaluate: number };
  readonly pools: ResourceCounts;
  /** Whether a rollout needs a sandbox. */
  readonly sandbox: "none" | "image";
  readonly work: WorkOf;
}

export const workloadSeeds = [1, 2, 3, 4, 5] as const;

/**
 * Of the generator. Over streams 0–7 the ideal speed-up of seeds 1–5 (ratio of medians, paper's workload) is 1.61 to 1.70; this
 * one's 1.67 lies close to what hundreds of seeds give, 1.65.
 */
const stream = 0;
const longMs = 24 * 3_600_000;
const shape = {
  groups: 64,
  groupSize: 8,
  bounds: { init: 96, run: 96, evaluate: 96 },
  stageTimeoutMs: { init: longMs, run: longMs, evaluate: longMs },
} as const;
const slots = { initSlot: 96, runSlot: 96, gradeSlot: 96, gpu: 1 } as const;
const second = 1_000;

/** @param scale divides every duration: 100 plays it at 1:100 time */
export function paperWorkload(seed: number, scale = 1): Workload {
  const own = (name: string, { instance }: RolloutKey) => standardNormal(stream, seed, name, instance.instanceIndex);
  const fresh = (name: string, { instance, visit, sample, attempt }: RolloutKey) =>
    standardNormal(stream, seed, name, instance.instanceIndex, visit, sample, attempt);
  const seconds = (value: number): number => (value * second) / scale;
  return {
    ...shape,
    pools: { ...slots, sandbox: 288 },
    sandbox: "image",
    work: (key) => ({
      initMs: seconds(200 * Math.exp(0.4 * fresh("z1", key))),
      runMs: seconds(Math.min(1000, 350 * Math.exp(0.4 * own("u", key) + 0.3 * fresh("z2", key)))),
      evaluateMs: seconds(200 * Math.exp(0.4 * own("v", key) + 0.3 * fresh("z3", key))),
    }),
  };
}

/** @param sigma of the logarithm; 0 = all alike */
export function anchorWorkload(seed: number, { scale = 1, sigma = 0.6 } = {}): Workload {
  const lognormal = (mean: number, name: string, { instance, visit, sample, attempt }: RolloutKey): number => {
    const z = standardNormal(stream, seed, name, instance.instanceIndex, visit, sample, attempt);
    return (mean * second * Math.exp(sigma * z - sigma ** 2 / 2)) / scale;
  };
  return {
    ...shape,
    pools: { ...slots, sandbox: shape.groups * shape.groupSize },
    sandbox: "none",
    work: (key) => ({
      initMs: lognormal(0.6, "init", key),
      runMs: lognormal(6, "run", key),
      evaluateMs: lognormal(2.7, "evaluate", key),
    }),
  };
}
