/**
 * A step of known durations is played, what production records of it is written down, and the step is predicted from that alone. What
 * is left of an error is the luck of the order, in which a long rollout comes early or late; so it is the mean over several such steps
 * that is held to be small.
 */
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { recordSimulation } from "../../testing/record-simulation.ts";
import { standardNormal, uniform } from "./normal.ts";
import { predictRun } from "./predict-run.ts";
import type { RolloutKey, RolloutWork } from "./rollout-work.ts";
import { runScenario } from "./run-scenario.ts";
import { simulate } from "./simulate.ts";

type World = (of: (name: string) => readonly (string | number)[]) => RolloutWork;
const chance = (key: readonly (string | number)[]): number => uniform(...key);
const spread = (key: readonly (string | number)[], deviation: number): number =>
  Math.exp(deviation * standardNormal(...key));

const worlds: Readonly<Record<string, World>> = {
  "all alike": () => ({ initMs: 3_000, runMs: 20_000, evaluateMs: 4_000 }),
  "evenly spread": (of) => ({
    initMs: 1_000 + 5_000 * chance(of("init")),
    runMs: 5_000 + 40_000 * chance(of("run")),
    evaluateMs: 4_000,
  }),
  lognormal: (of) => ({ initMs: 3_000, runMs: 20_000 * spread(of("run"), 0.5), evaluateMs: 4_000 }),
  "short answers and long work": (of) => ({
    initMs: 1_000,
    runMs: chance(of("run")) < 0.4 ? 800 : 20_000,
    evaluateMs: 1_000,
  }),
  "opened dearly, reset quickly": (of) => ({
    initMs: 25_000 * spread(of("init"), 0.1),
    resetMs: 1_500,
    runMs: 10_000 * spread(of("run"), 0.3),
    evaluateMs: 3_000,
  }),
};
const luck = 24;

interface Played {
  /** By step, from the end of the one before. */
  readonly actual: readonly number[];
  readonly predicted: { readonly first: number; readonly later: number };
}

/** 32 rollouts a step through 8 slots, with updates of 5 s; two steps, the prediction made from the first. */
function played(world: World, dispatcher: string, seed: number): Played {
  const config = buildConfig({
    dispatcher: { name: dispatcher, bounds: { init: 8, run: 8, evaluate: 8 } },
    algorithm: { groupsPerStep: 8, groupSize: 4 },
    budget: { steps: 2 },
    evaluation: { samples: 0 },
  });
  const common = { config, pools: counts(24), taskSandboxes: ["image" as const], gradedInPlace: [false] };
  const work = ({ instance, visit, sample }: RolloutKey): RolloutWork =>
    world((name) => [seed, name, instance.instanceIndex, visit, sample]);
  const trainer = { msPerStep: 5_000 };
  const actual = simulate({ ...common, taskSizes: [{ train: 1_000, evaluate: null }], work, trainer, seed });
  const recorded = { durations: recordSimulation(actual, 1), taskSets: ["task"] };
  const assumed = { ms: { init: 1, run: 1, evaluate: 1 }, deviation: 0 };
  const { firstStepMs, stepMs } = predictRun(runScenario({ ...common, recorded, assumed }), 4, 2);
  const [first = 0, second = 0] = actual.steps.map(({ endedAt }) => endedAt ?? 0);
  return { actual: [first, second - first], predicted: { first: firstStepMs, later: stepMs.mean } };
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;

describe.each(["pipeline", "fixed-pool"])("%s", (dispatcher) => {
  test.each(Object.entries(worlds))("%s: predicted as it was, from its own durations", (_, world) => {
    const all = Array.from({ length: luck }, (_, at) => played(world, dispatcher, at + 1));
    const errors = all.map(({ actual, predicted }) => predicted.first / (actual[0] ?? 0) - 1);
    expect(Math.abs(meanOf(errors))).toBeLessThan(0.03);
    expect(Math.max(...errors.map(Math.abs))).toBeLessThan(0.25);
    // Of steps to come nothing but what is usual is known.
    const actual = meanOf(all.map((one) => one.actual[1] ?? 0));
    expect(Math.abs(meanOf(all.map(({ predicted }) => predicted.later)) / actual - 1)).toBeLessThan(0.03);
  });
});

test("a step after the first finds its environments open", () => {
  const world = worlds["opened dearly, reset quickly"];
  if (world === undefined) throw new Error("there is no such world");
  const { actual, predicted } = played(world, "fixed-pool", 1);
  expect(actual[0] ?? 0).toBeGreaterThan((actual[1] ?? 0) + 15_000);
  expect(predicted.first).toBeGreaterThan(predicted.later + 15_000);
});
