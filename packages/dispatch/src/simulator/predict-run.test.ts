import { expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { predictRun, waitShares } from "./predict-run.ts";
import { runScenario } from "./run-scenario.ts";

const scenario = (dispatcher: object = {}, kind: "train" | "evaluate" = "train") =>
  runScenario({
    config: buildConfig({
      kind,
      dispatcher: { bounds: { init: 8, run: 8, evaluate: 8 }, ...dispatcher },
      algorithm: { groupsPerStep: 4, groupSize: 4 },
      evaluation: { samples: 4 },
      budget: { steps: 10 },
    }),
    pools: counts(64),
    taskSandboxes: ["none"],
    recorded: null,
    assumed: { ms: { init: 1_000, run: 10_000, evaluate: 1_000 }, deviation: 0 },
    trainer: { msPerStep: 4_000 },
  });

test("16 rollouts through 8 slots: two runs one after the other, and every second one waits for its slot", () => {
  const { stepMs, firstStepMs, makespanMs, waits, ...rest } = predictRun(scenario(), 2, 10);
  expect(rest).toEqual({
    ...{ dispatcher: "pipeline", bounds: { init: 8, run: 8, evaluate: 8 }, sandboxes: 64, seeds: 2, steps: 10 },
  });
  // Init, two times run, evaluate and the update.
  expect(stepMs.mean).toBeCloseTo(1_000 + 20_000 + 1_000 + 4_000, 0);
  expect(firstStepMs).toBeCloseTo(stepMs.mean, 6);
  expect(makespanMs).toBeCloseTo(10 * stepMs.mean, 3);
  // Eight wait for init for 1 s and then for run for 9 s; all work for 12 s.
  expect(waits.init).toBeCloseTo(8 / (8 + 72 + 16 * 12), 3);
  expect(waits.run).toBeCloseTo(72 / (8 + 72 + 16 * 12), 3);
  expect(waits.evaluate).toBe(0);
});

test("where steps overlap, the first one fills the pipe and the others keep its pace", () => {
  const { stepMs, firstStepMs, makespanMs } = predictRun(scenario({ name: "async", maxStaleness: 2 }), 1, 10);
  expect(firstStepMs).toBeGreaterThan(stepMs.mean);
  expect(makespanMs).toBeCloseTo(firstStepMs + 9 * stepMs.mean, 6);
});

test("an evaluation run is one step, all of it", () => {
  const { stepMs, makespanMs, steps } = predictRun(scenario({}, "evaluate"), 1, 1);
  expect([steps, makespanMs]).toEqual([1, stepMs.mean]);
  expect(stepMs.mean).toBeGreaterThan(12_000 - 1);
});

test("shares are of stages that came to their end, on any clock", () => {
  const span = (readyAt: number, startedAt: number | null, endedAt: number | null) =>
    ({ stage: "run", readyAt, startedAt, endedAt }) as const;
  expect(waitShares([span(100, 130, 200), span(150, 200, null), span(150, null, null)])).toEqual({
    ...{ init: 0, run: 0.3, evaluate: 0 },
  });
  expect(waitShares([span(0, 5, null)])).toBeNull();
});
