/** Little worlds of every kind, for property tests. */
import type { ResourceCounts } from "@rolldeck/contracts/plan";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import fc from "fast-check";
import { dispatcherNames } from "../src/registry.ts";
import { buildConfig } from "./build-snapshot.ts";
import type { Chaos } from "./workers.ts";
import type { RunSetup, WorldSetup } from "./world.ts";

const upTo = (max: number) => fc.integer({ min: 1, max });
const sandbox = fc.constantFrom("none" as const, "image" as const);

/** What a run may say of its flow beyond policy and bounds. */
export type Flow = NonNullable<RunConfigInput["dispatcher"]>;

export const plain: fc.Arbitrary<Flow> = fc.record({ name: fc.constantFrom(...dispatcherNames) });

export const someFlow: fc.Arbitrary<Flow> = fc.record({
  name: fc.constantFrom(...dispatcherNames, "async" as const, "async" as const),
  weight: fc.constantFrom(0.5, 1, 4),
  priority: fc.nat({ max: 2 }),
  maxStaleness: fc.integer({ min: 0, max: 3 }),
  startsPerSecond: fc.option(fc.constantFrom(0.2, 1.5, 10)),
  overSample: fc.record({ groups: fc.nat({ max: 2 }), rollouts: fc.nat({ max: 2 }) }),
  zeroVariance: fc.record({
    mode: fc.constantFrom("keep" as const, "filter" as const, "replace" as const),
    maxReplaced: upTo(4),
  }),
});

export const someRun = (flow: fc.Arbitrary<Flow> = plain): fc.Arbitrary<RunSetup> =>
  fc
    .record({
      flow,
      bounds: fc.record({ init: upTo(4), run: upTo(6), evaluate: upTo(3) }),
      groupPolicy: fc.constantFrom("shrink" as const, "drop-group" as const, "wait" as const),
      groupsPerStep: upTo(3),
      groupSize: upTo(4),
      steps: upTo(3),
      samples: fc.integer({ min: 0, max: 3 }),
      every: fc.integer({ min: 0, max: 2 }),
      kind: fc.constantFrom("train" as const, "train" as const, "evaluate" as const),
      taskSandboxes: fc.tuple(sandbox, sandbox),
      gradedInPlace: fc.tuple(fc.boolean(), fc.boolean()),
    })
    .map((it) => ({
      config: buildConfig({
        kind: it.kind,
        taskSets: [{ name: "first" }, { name: "second", weight: 2 }],
        dispatcher: {
          ...it.flow,
          bounds: it.bounds,
          stageTimeoutMs: { init: 60_000, run: 300_000, evaluate: 60_000 },
        },
        algorithm: { groupsPerStep: it.groupsPerStep, groupSize: it.groupSize, groupPolicy: it.groupPolicy },
        evaluation: { samples: it.samples, every: it.every },
        budget: { steps: it.steps },
      }),
      taskSizes: [
        { train: null, evaluate: null },
        { train: 5, evaluate: 2 },
      ],
      taskSandboxes: it.taskSandboxes,
      gradedInPlace: it.gradedInPlace,
    }));

const probability = (max: number) => fc.double({ min: 0, max, noNaN: true });
export const someChaos: fc.Arbitrary<Chaos> = fc.record({
  lostJob: probability(0.2),
  lostWorker: probability(0.3),
  hang: probability(0.1),
  failure: probability(0.4),
  handBack: probability(0.2),
});

/** Room for one lease of everything for every run: with less, runs may wait for one another. */
const somePools = (runs: number): fc.Arbitrary<ResourceCounts> => {
  const size = fc.integer({ min: runs, max: runs + 5 });
  return fc.record({ sandbox: size, initSlot: size, runSlot: size, gradeSlot: size, gpu: size });
};

export const someWorld = (chaos: fc.Arbitrary<Chaos>, flow: fc.Arbitrary<Flow> = plain): fc.Arbitrary<WorldSetup> =>
  fc.array(someRun(flow), { minLength: 1, maxLength: 3 }).chain((runs) =>
    fc.record({
      seed: fc.nat(),
      pools: somePools(runs.length),
      chaos,
      chaosMs: fc.integer({ min: 0, max: 900_000 }),
      runs: fc.constant(runs),
      wishes: fc.constantFrom("exact" as const, "coarse" as const),
    }),
  );
