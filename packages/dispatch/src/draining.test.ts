/** A run that drains, and what a person holds. */
import type { RunSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import {
  buildConfig,
  buildGroup,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
  scored,
} from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";

const now = 1_000_000;
const actionsOf = (over: Partial<RunSnapshot>) =>
  plan(buildSnapshot({ steps: [buildStep()], ...over }), counts(100)).actions;
const ofDraining = (over: Partial<RunSnapshot>) => actionsOf({ draining: true, ...over });
const untouched = buildRollout({ rolloutId: "untouched" });
const paused = [{ do: "move-run", from: "running", to: "pausing", reason: "what was started has come to its end" }];

describe("a draining run", () => {
  test("brings on what it has started, and starts nothing", () => {
    const rollouts = [
      untouched,
      buildRollout({ rolloutId: "again", attempt: 2 }),
      buildRollout({ rolloutId: "prepared", stage: "run" }),
      buildRollout({ rolloutId: "sampled", stage: "evaluate", ending: "answer" }),
    ];
    expect(ofDraining({ rollouts }).map((action) => "rolloutId" in action && action.rolloutId)).toEqual([
      "sampled",
      "prepared",
      "again",
    ]);
  });

  test("pauses when nothing that was begun is left; what never was waits for it to go on", () => {
    const active = buildRollout({ rolloutId: "active", stage: "run", state: "active", leaseUntil: now + 9 });
    expect(ofDraining({ rollouts: [untouched, active] })).toEqual([]);
    expect(ofDraining({ rollouts: [untouched, scored()] })).toEqual(paused);
    expect(actionsOf({ rollouts: [untouched, scored()] })).toMatchObject([{ do: "admit", rolloutId: "untouched" }]);
  });

  test("updates a step that has gathered, waits for the update, and makes no step after it", () => {
    expect(ofDraining({ rollouts: [scored()] })).toMatchObject([{ do: "begin-update" }]);
    expect(ofDraining({ steps: [buildStep({ state: "updating", updateLeaseUntil: now + 9 })] })).toEqual([]);
    expect(ofDraining({ servingVersion: 1, steps: [buildStep({ state: "done" })] })).toEqual(paused);
  });

  test("completes when that was its last step", () => {
    const config = buildConfig({ budget: { steps: 1 } });
    expect(ofDraining({ config, servingVersion: 1, steps: [buildStep({ state: "done" })] })).toMatchObject([
      { do: "move-run", to: "completed" },
    ]);
  });

  test("makes no step for an outside trainer either", () => {
    const config = buildConfig({ stepSource: "driven" });
    const groups = [{ taskSet: 0, split: "train" as const, instanceIndex: 0 }];
    const batchRequests = [{ batchId: "b", trainerStep: 1, groups, groupSize: 1, deadlineAt: null }];
    expect(ofDraining({ config, steps: [], batchRequests })).toEqual(paused);
  });

  test("does not wait for what a person holds", () => {
    expect(ofDraining({ rollouts: [buildRollout({ stage: "run", held: true })] })).toEqual(paused);
  });
});

describe("what a person holds", () => {
  const rollouts = [
    buildRollout({ rolloutId: "free" }),
    buildRollout({ rolloutId: "held", held: true }),
    buildRollout({ rolloutId: "in-group", groupId: "group-2" }),
  ];

  test("is not admitted, its siblings are", () => {
    const groups = [buildGroup(), buildGroup({ groupId: "group-2", held: true })];
    expect(actionsOf({ rollouts, groups })).toMatchObject([{ do: "admit", rolloutId: "free" }]);
  });

  test("goes on with the stage it is in, also with another worker", () => {
    const active = buildRollout({ stage: "run", state: "active", held: true, leaseUntil: now - 1 });
    expect(actionsOf({ rollouts: [active] })).toMatchObject([{ do: "redeliver" }]);
  });
});
