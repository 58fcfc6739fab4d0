/** What was recorded of a run is what its scenario plays; without records it plays what is assumed. */
import type { Durations } from "@rolldeck/contracts/api/durations";
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { type RunScenario, runScenario } from "./run-scenario.ts";
import { simulate } from "./simulate.ts";

const config = buildConfig({
  taskSets: [{ name: "one" }, { name: "two" }],
  algorithm: { groupsPerStep: 8, groupSize: 4 },
  evaluation: { samples: 3, every: 1 },
  budget: { steps: 50, hours: 1, tokens: 10 },
});

/** 10 instances × 6 of task set "one", which the recorded run calls its second. */
const durations = (over: Partial<Durations["rollouts"]> = {}): Durations => {
  const all = Array.from({ length: 60 }, (_, at) => at);
  return {
    runId: "recorded",
    rollouts: {
      taskSet: all.map(() => 1),
      instanceIndex: all.map((at) => 1_000 + (at % 10)),
      initMs: all.map(() => 2_000),
      reset: all.map(() => false),
      runMs: all.map((at) => (at % 10 === 3 ? 80_000 : 20_000)),
      evaluateMs: all.map(() => 5_000),
      modelMs: all.map(() => 10_000),
      sampledTokens: all.map(() => 500),
      turns: all.map(() => 5),
      ...over,
    },
    steps: { step: [1, 2, 3], stepMs: [90_000, 60_000, 61_000], updateMs: [40_000, 9_000, 11_000] },
  };
};
const scenario = (over: Partial<RunScenario> = {}) =>
  runScenario({
    config,
    pools: counts(64),
    taskSandboxes: ["none", "none"],
    recorded: { durations: durations(), taskSets: ["other", "one"] },
    assumed: { ms: { init: 1_000, run: 30_000, evaluate: 2_000 }, deviation: 0.2 },
    ...over,
  });
const key = (instanceIndex: number, taskSet = 0) => ({
  instance: { taskSet, split: "train" as const, instanceIndex },
  visit: 0,
  sample: 0,
  attempt: 1,
});

describe("a recorded run", () => {
  test("is played by the names of its task sets, each instance as it was", () => {
    const { of, basis, rollouts } = scenario();
    expect([basis, rollouts]).toEqual(["recorded", 60]);
    const input = of(1);
    expect(input.taskSizes).toEqual([
      { train: 10, evaluate: null },
      { train: null, evaluate: null },
    ]);
    const run = Array.from({ length: 10 }, (_, at) => input.work(key(at)).runMs);
    expect(run.toSorted((a, b) => a - b).at(-1)).toBeGreaterThan(60_000);
    expect(run.filter((ms) => ms > 15_000 && ms < 26_000)).toHaveLength(9);
    expect(input.expected?.(key(3).instance)?.init).toBeCloseTo(2_000, 3);
  });

  test("has one step without evaluations and hard budgets, and the median update", () => {
    const input = scenario().of(2);
    expect(input.trainer).toEqual({ msPerStep: 11_000 });
    const simulation = simulate(input);
    expect(simulation.steps.map(({ purpose, step }) => `${purpose} ${step}`)).toEqual(["train 1"]);
    expect(simulation.status).toBe("completed");
    expect(simulation.makespanMs).toBeGreaterThan(27_000 + 11_000);
  });

  test("with a GPU samples its tokens and keeps the rest of its run stage", () => {
    const gpu = { requestTokensPerSecond: 50, peakTokensPerSecond: 1_000, halfAt: 1 };
    const { sampling, runMs } = scenario({ gpu }).of(1).work(key(0));
    expect(sampling?.turns).toBe(5);
    // 60 × 500 tokens over 54 × 20 s and 6 × 80 s; the model took 10 of 26 s on average.
    expect((sampling?.tokens ?? 0) / ((runMs * 26) / 16)).toBeCloseTo(30_000 / 1_560_000, 6);
  });

  test("of none of these task sets is not used", () => {
    const { basis, of } = scenario({ recorded: { durations: durations(), taskSets: ["a", "b"] } });
    expect(basis).toBe("assumed");
    expect(of(1).work(key(0)).runMs).toBeGreaterThan(10_000);
  });
});

test("without records what is assumed is played, and instances differ", () => {
  const { basis, of } = scenario({ recorded: null });
  expect(basis).toBe("assumed");
  const run = Array.from({ length: 200 }, (_, at) => of(3).work(key(at, 1)).runMs);
  expect(run.reduce((sum, ms) => sum + ms, 0) / run.length / 30_000).toBeCloseTo(1, 1);
  expect(new Set(run).size).toBe(200);
});

test("an evaluation run keeps its evaluation", () => {
  const evaluate = buildConfig({ kind: "evaluate", evaluation: { samples: 4, samplesPerInstance: 2 } });
  const simulation = simulate(scenario({ config: evaluate, taskSandboxes: ["none"], recorded: null }).of(1));
  expect(simulation.outcomes.completed).toBe(8);
});
