/** Engines that share their tokens, trainers beside or on the same GPUs, and stages that fail: worked out by hand. */
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import type { RolloutWork } from "./rollout-work.ts";
import { simulate } from "./simulate.ts";
import type { SimulationInput } from "./simulation-input.ts";
import { peakOf } from "./step-function.ts";

/** One group of so many rollouts, all of the same work. */
const alike = (rollouts: number, work: RolloutWork, over: Partial<SimulationInput> = {}): SimulationInput => ({
  config: buildConfig({
    dispatcher: { name: "batch" },
    algorithm: { groupsPerStep: 1, groupSize: rollouts },
    budget: { steps: 1 },
  }),
  pools: counts(100),
  work: () => work,
  taskSizes: [{ train: null, evaluate: null }],
  taskSandboxes: ["none"],
  ...over,
});

describe("the GPU", () => {
  const gpu = { requestTokensPerSecond: 50, peakTokensPerSecond: 400, halfAt: 8 };
  const work = { initMs: 0, runMs: 3_000, evaluateMs: 0, sampling: { tokens: 1_000, turns: 4 } };

  test("gives one rollout what one request gets", () => {
    const { makespanMs, waits } = simulate(alike(1, work, { gpu: { ...gpu, halfAt: 1 } }));
    expect(makespanMs).toBeCloseTo(20_000 + 3_000, 3);
    expect(waits.gpu).toBeCloseTo(0, 3);
  });

  test("gives many what it has, evenly", () => {
    const rollouts = 24;
    const { makespanMs, waits, active } = simulate(alike(rollouts, work, { gpu }));
    // 400·24/(24 + 8) = 300 tokens/s for all of them.
    expect(makespanMs).toBeCloseTo((rollouts * 1_000 * 1_000) / 300 + 3_000, 3);
    expect(waits.gpu).toBeCloseTo(rollouts * (80_000 - 20_000), 0);
    expect(peakOf(active.sampling)).toBe(rollouts);
  });

  test("is faster with replicas, up to what one request gets", () => {
    const time = (replicas: number) => simulate(alike(24, work, { gpu: { ...gpu, replicas } })).makespanMs;
    expect(time(2)).toBeLessThan(time(1));
    expect(time(4)).toBeLessThan(time(2));
    expect(time(1_000)).toBeCloseTo(simulate(alike(1, work, { gpu })).makespanMs, 3);
  });

  test("counts what is sampled, whoever is cancelled meanwhile", () => {
    const config = buildConfig({
      dispatcher: { name: "batch" },
      algorithm: { groupsPerStep: 2, groupSize: 8 },
      budget: { steps: 5, tokens: 9_000 },
    });
    const simulation = simulate({ ...alike(1, work, { gpu }), config });
    expect(simulation.status).toBe("completed");
    expect(simulation.reason).toMatch(/9000 sampled tokens was reached/);
    expect(simulation.outcomes.cancelled).toBe(16);
    expect(simulation.active.sampling.value.at(-1)).toBe(0);
  });
});

describe("the trainer", () => {
  const work = { initMs: 1_000, runMs: 6_000, evaluateMs: 3_000, sampling: { tokens: 500, turns: 1 } };
  const steps = (over: Partial<SimulationInput>) => {
    const input = alike(4, work, over);
    return simulate({ ...input, config: { ...input.config, budget: { ...input.config.budget, steps: 3 } } });
  };

  test("follows every synchronous step", () => {
    const { makespanMs, trainerOnlyMs, trainerIdleMs, steps: done } = steps({ trainer: { msPerStep: 4_000 } });
    expect(makespanMs).toBe(3 * (10_000 + 4_000));
    expect(trainerOnlyMs).toBe(12_000);
    expect(trainerIdleMs).toBe(30_000);
    expect(done.map(({ updateAt, endedAt, trained }) => [(endedAt ?? 0) - (updateAt ?? 0), trained])).toEqual(
      done.map(() => [4_000, 4]),
    );
  });

  test("takes as long as the tokens of the step ask for", () => {
    // 4 × 500 tokens at 1,000 a second.
    expect(steps({ trainer: { tokensPerSecond: 1_000 } }).makespanMs).toBe(3 * (10_000 + 2_000));
  });

  test("on the sampler's GPUs changes nothing of a synchronous run", () => {
    const apart = steps({ trainer: { msPerStep: 4_000 } });
    expect(steps({ trainer: { msPerStep: 4_000, colocated: true } }).makespanMs).toBe(apart.makespanMs);
  });
});

describe("failures", () => {
  test("cost attempts, and a rollout that always fails ends as failed", () => {
    const work = { initMs: 1_000, runMs: 1_000, evaluateMs: 1_000 };
    const never = simulate(alike(3, work, { failures: { init: 1, run: 0, evaluate: 0 } }));
    expect(never.outcomes).toEqual({ completed: 0, failed: 3, cancelled: 0 });
    expect(never.reason).toMatch(/no step had a scored rollout/);
    expect(never.waits["back-off"]).toBeGreaterThan(0);
    const some = simulate(alike(60, work, { failures: { init: 0.2, run: 0.2, evaluate: 0.2 } }));
    expect(some.status).toBe("completed");
    expect(some.spans.length).toBeGreaterThan(180);
    expect(some.spans.some(({ attempt }) => attempt > 1)).toBe(true);
  });
});
