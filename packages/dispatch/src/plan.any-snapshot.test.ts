/** The planner on snapshots that no story leads to: rows may be as odd as a crash or a person leaves them. */
import { endingNames } from "@rolldeck/contracts/endings";
import {
  endedRunStatuses,
  hasEdge,
  rolloutEdges,
  runEdges,
  runStatuses,
  stages,
  stepEdges,
  stepStates,
} from "@rolldeck/contracts/lifecycle";
import {
  type Action,
  type Resource,
  type ResourceCounts,
  type RolloutSnapshot,
  type RunSnapshot,
  resources,
  type StepSnapshot,
} from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { expect, test } from "vitest";
import { buildConfig, buildRollout, buildSnapshot, buildStep, counts } from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";
import { dispatcherNames } from "./registry.ts";

const now = 1_000_000;
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
      stepId: fc.constantFrom("step-1", "step-2", "step-3"),
      groupId: fc.constantFrom("group-1", "group-2"),
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
      holds: fc.subarray<Resource>(["sandbox", "initSlot", "runSlot", "gradeSlot"]),
    })
    .map(({ outcome, ...rollout }) =>
      buildRollout({ ...rollout, rolloutId: `rollout-${at}`, outcome: rollout.state === "settled" ? outcome : null }),
    );

const someConfig = fc
  .record({
    dispatcher: fc.record({
      name: fc.constantFrom(...dispatcherNames),
      bounds: fc.record({
        init: fc.integer({ min: 1, max: 6 }),
        run: fc.integer({ min: 1, max: 6 }),
        evaluate: fc.integer({ min: 1, max: 6 }),
      }),
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

const someSnapshot: fc.Arbitrary<RunSnapshot> = fc
  .record({
    status: fc.constantFrom(...runStatuses, "running" as const, "running" as const, "running" as const),
    config: someConfig,
    servingVersion: fc.option(fc.nat({ max: 4 })),
    modelBootId: fc.option(fc.constantFrom("boot-1", "boot-2")),
    backendBootId: fc.option(fc.constantFrom("boot-1", "boot-2")),
    prepareLeaseUntil: around,
    prepareFailures: fc.nat({ max: 7 }),
    trainerLeaseUntil: around,
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
    return buildSnapshot({ ...over, rollouts, held: heldBy(rollouts) });
  });

const someGrants: fc.Arbitrary<ResourceCounts> = fc.record({
  sandbox: fc.nat({ max: 9 }),
  initSlot: fc.nat({ max: 9 }),
  runSlot: fc.nat({ max: 9 }),
  gradeSlot: fc.nat({ max: 9 }),
  gpu: fc.nat({ max: 9 }),
});

function checkLegal(snapshot: RunSnapshot, action: Action): void {
  if (action.do === "move-run") {
    expect(action.from).toBe(snapshot.status);
    expect(hasEdge(runEdges, action.from, action.to)).toBe(true);
  } else if ("stepId" in action) {
    const step = snapshot.steps.find(({ stepId }) => stepId === action.stepId);
    const to = action.do === "end-step" ? action.to : "updating";
    expect(step && (action.do === "redeliver-update" ? step.state === to : hasEdge(stepEdges, step.state, to))).toBe(
      true,
    );
  } else if ("rolloutId" in action) {
    const rollout = snapshot.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId);
    expect(rollout?.attempt).toBe(action.attempt);
    const to = {
      admit: "queued",
      redeliver: "queued",
      retry: "waiting",
      regrade: "waiting",
      settle: "settled",
    } as const;
    const state = rollout?.state ?? "settled";
    expect(state === to[action.do] || hasEdge(rolloutEdges, state, to[action.do])).toBe(true);
    expect(state).not.toBe("settled");
  }
}

test("every action is an edge of the tables, and no row is moved twice", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const { actions, wakeAt } = plan(snapshot, grants);
      for (const action of actions) checkLegal(snapshot, action);
      const moved = actions.flatMap((action) =>
        "rolloutId" in action ? [action.rolloutId] : "stepId" in action ? [action.stepId] : [],
      );
      expect(new Set(moved).size).toBe(moved.length);
      expect(wakeAt ?? now).toBeGreaterThanOrEqual(now);
    }),
    { numRuns: 500 },
  );
});

test("admissions spend the grants and no more, and take no lease twice", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const spent: Record<Resource, number> = { ...snapshot.held };
      for (const action of plan(snapshot, grants).actions) {
        if (action.do !== "admit") continue;
        const holds = snapshot.rollouts.find(({ rolloutId }) => rolloutId === action.rolloutId)?.holds ?? [];
        for (const { resource } of action.leases) {
          expect(holds).not.toContain(resource);
          spent[resource] += 1;
        }
      }
      for (const resource of resources) {
        expect(spent[resource]).toBeLessThanOrEqual(Math.max(grants[resource], snapshot.held[resource]));
      }
    }),
    { numRuns: 500 },
  );
});

test("a run with leases to spend always has something to do or a time to look again", () => {
  fc.assert(
    fc.property(someSnapshot, (snapshot) => {
      const { actions, wakeAt } = plan(snapshot, counts(100));
      const rests = endedRunStatuses.includes(snapshot.status) || snapshot.status === "paused";
      const waitsForTrainer = snapshot.config.stepSource === "driven";
      if (!rests && !waitsForTrainer) expect(actions.length > 0 || wakeAt !== null).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("a plan is a function of its arguments and leaves them alone", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const copy = structuredClone(snapshot);
      expect(plan(snapshot, grants)).toEqual(plan(copy, grants));
      expect(snapshot).toEqual(copy);
    }),
    { numRuns: 200 },
  );
});
