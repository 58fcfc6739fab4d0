/** Snapshots that no story leads to: rows may be as odd as a crash or a person leaves them. For property tests. */
import { endingNames } from "@rolldeck/contracts/endings";
import { runStatuses, stages, stepStates } from "@rolldeck/contracts/lifecycle";
import {
  type GroupSnapshot,
  type Resource,
  type ResourceCounts,
  type RolloutSnapshot,
  type RunSnapshot,
  type StepSnapshot,
  setAsideReasons,
} from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { dispatcherNames } from "../src/registry.ts";
import { buildConfig, buildGroup, buildRollout, buildSnapshot, buildStep, counts } from "./build-snapshot.ts";

export const now = 1_000_000;
const places = [1, 2, 3].flatMap((step) =>
  [1, 2].map((group) => ({ stepId: `step-${step}`, groupId: `group-${step}-${group}` })),
);
const around = fc.option(fc.integer({ min: now - 4_000_000, max: now + 60_000 }));

const someStep = (at: number): fc.Arbitrary<StepSnapshot> =>
  fc
    .record({
      purpose: fc.constantFrom("train" as const, "evaluate" as const),
      state: fc.constantFrom(...stepStates),
      updateLeaseUntil: around,
      updateFailures: fc.nat({ max: 7 }),
    })
    .map((step) => buildStep({ ...step, stepId: `step-${at}`, step: at }));

const someRollout = (at: number): fc.Arbitrary<RolloutSnapshot> =>
  fc
    .record({
      place: fc.constantFrom(...places),
      taskSet: fc.nat({ max: 1 }),
      attempt: fc.integer({ min: 1, max: 12 }),
      stage: fc.constantFrom(...stages),
      state: fc.constantFrom("waiting" as const, "queued" as const, "active" as const, "settled" as const),
      deliveries: fc.nat({ max: 12 }),
      leaseUntil: around,
      notBefore: around,
      stageStartedAt: around,
      ending: fc.option(fc.constantFrom(...endingNames)),
      outcome: fc.constantFrom("completed" as const, "failed" as const, "cancelled" as const),
      reward: fc.option(fc.double()),
      infrastructureFailures: fc.nat({ max: 12 }),
      evaluateFailures: fc.nat({ max: 12 }),
      firstVersion: fc.option(fc.nat({ max: 4 })),
      settledAt: around,
      held: fc.boolean(),
      holds: fc.subarray<Resource>(["sandbox", "initSlot", "runSlot", "gradeSlot"]),
    })
    .map(({ outcome, place, ...rollout }) =>
      buildRollout({
        ...rollout,
        ...place,
        rolloutId: `rollout-${at}`,
        outcome: rollout.state === "settled" ? outcome : null,
      }),
    );

const someGroup = (place: (typeof places)[number]): fc.Arbitrary<GroupSnapshot> =>
  fc
    .record({
      setAside: fc.option(fc.constantFrom(...setAsideReasons)),
      replaces: fc.option(fc.constantFrom("group-1-1", "group-2-2", "group-9-1")),
      expectedMs: fc.option(fc.record({ init: fc.nat(), run: fc.nat(9_000), evaluate: fc.nat() })),
      held: fc.boolean(),
    })
    .map((group) => buildGroup({ ...place, ...group }));

const someConfig = fc
  .record({
    dispatcher: fc.record({
      name: fc.constantFrom(...dispatcherNames),
      bounds: fc.record({
        init: fc.integer({ min: 1, max: 6 }),
        run: fc.integer({ min: 1, max: 6 }),
        evaluate: fc.integer({ min: 1, max: 6 }),
      }),
      maxStaleness: fc.nat({ max: 2 }),
      startsPerSecond: fc.option(fc.constantFrom(0.02, 1, 30)),
      overSample: fc.record({ groups: fc.nat({ max: 2 }), rollouts: fc.nat({ max: 2 }) }),
      zeroVariance: fc.record({
        mode: fc.constantFrom("keep" as const, "filter" as const, "replace" as const),
        maxReplaced: fc.integer({ min: 1, max: 2 }),
      }),
      adaptive: fc.boolean(),
      restartTail: fc.option(fc.constant(1.5)),
    }),
    kind: fc.constantFrom("train" as const, "evaluate" as const),
    stepSource: fc.constantFrom("planned" as const, "planned" as const, "driven" as const),
    evaluation: fc.record({ samples: fc.nat({ max: 3 }), every: fc.nat({ max: 2 }) }),
    groupPolicy: fc.constantFrom("shrink" as const, "drop-group" as const, "wait" as const),
  })
  .map(({ groupPolicy, ...config }) =>
    buildConfig({
      ...config,
      taskSets: [{ name: "a" }, { name: "b" }],
      algorithm: { groupsPerStep: 2, groupSize: 2, groupPolicy },
    }),
  );

const heldBy = (rollouts: readonly RolloutSnapshot[]): ResourceCounts => {
  const held: Record<Resource, number> = { ...counts(0) };
  for (const { holds } of rollouts) for (const resource of holds) held[resource] += 1;
  return held;
};

export const someSnapshot: fc.Arbitrary<RunSnapshot> = fc
  .record({
    status: fc.constantFrom(...runStatuses, "running" as const, "running" as const, "running" as const),
    config: someConfig,
    servingVersion: fc.option(fc.nat({ max: 4 })),
    modelBootId: fc.option(fc.constantFrom("boot-1", "boot-2")),
    backendBootId: fc.option(fc.constantFrom("boot-1", "boot-2")),
    prepareLeaseUntil: around,
    prepareFailures: fc.nat({ max: 7 }),
    trainerLeaseUntil: around,
    groups: fc.tuple(...places.map(someGroup)),
    groupsDrawn: fc.nat({ max: 20 }),
    recentStarts: fc.array(fc.integer({ min: now - 60_000, max: now }), { maxLength: 4 }),
    engine: fc.option(
      fc.record({
        at: fc.integer({ min: now - 40_000, max: now }),
        cacheUse: fc.double({ min: 0, max: 1, noNaN: true }),
        running: fc.nat({ max: 9 }),
        waiting: fc.nat({ max: 1 }),
      }),
    ),
    runLimit: fc.option(
      fc.record({ limit: fc.integer({ min: 1, max: 9 }), since: fc.integer({ min: now - 90_000, max: now }) }),
    ),
    draining: fc.constantFrom(false, false, true),
    taskSizes: fc.constantFrom(
      [
        { train: 3, evaluate: 1 },
        { train: null, evaluate: null },
      ],
      [
        { train: 0, evaluate: 0 },
        { train: 0, evaluate: 0 },
      ],
    ),
    taskSandboxes: fc.constantFrom(["none", "image"] as const, ["none", "none"] as const),
    steps: fc.tuple(someStep(1), someStep(2), someStep(3)),
    rollouts: fc
      .nat({ max: 12 })
      .chain((count) => fc.tuple(...Array.from({ length: count }, (_, at) => someRollout(at)))),
  })
  .map((over) => {
    const open = new Set(
      over.steps.filter(({ state }) => state === "gathering" || state === "updating").map((it) => it.stepId),
    );
    const rollouts = over.rollouts.filter(({ stepId }) => open.has(stepId));
    // A group and its rollouts are one write: none stands alone.
    const groups = over.groups.filter(({ groupId }) => rollouts.some((rollout) => rollout.groupId === groupId));
    return buildSnapshot({ ...over, rollouts, groups, held: heldBy(rollouts) });
  });

export const someGrants: fc.Arbitrary<ResourceCounts> = fc.record({
  sandbox: fc.nat({ max: 9 }),
  initSlot: fc.nat({ max: 9 }),
  runSlot: fc.nat({ max: 9 }),
  gradeSlot: fc.nat({ max: 9 }),
  gpu: fc.nat({ max: 9 }),
});
