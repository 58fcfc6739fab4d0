/** Which steps come, what they take, and how they end. */
import type { BatchRequestSnapshot, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import {
  buildConfig,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
  lost,
  scored,
} from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";

const now = 1_000_000;
const actionsOf = (over: Partial<RunSnapshot>) => plan(buildSnapshot(over), counts(100)).actions;
const done = (step: number, purpose: "train" | "evaluate" = "train", over = {}) =>
  buildStep({ stepId: `${purpose}-${step}`, step, purpose, state: "done", ...over });

describe("the next planned step", () => {
  test("is the first train step, with groups of the config's size", () => {
    const [action] = actionsOf({});
    expect(action).toMatchObject({
      do: "create-step",
      purpose: "train",
      step: 1,
      source: "planned",
      batchId: null,
      groupSize: 2,
    });
    expect(action?.do === "create-step" && action.groups).toHaveLength(2);
  });

  test("waits for the one before: its rollouts sample the version it leaves", () => {
    expect(actionsOf({ steps: [buildStep({ state: "updating", updateLeaseUntil: now + 1 })] })).toEqual([]);
    expect(actionsOf({ servingVersion: 1, steps: [done(1)] })).toMatchObject([{ do: "create-step", step: 2 }]);
  });

  test("never takes a number again, also after a step without an update", () => {
    const steps = [done(1), done(2, "train", { state: "failed" })];
    expect(actionsOf({ servingVersion: 1, steps })).toMatchObject([{ do: "create-step", step: 3 }]);
    expect(actionsOf({ servingVersion: 1, steps: [done(1), done(3, "train", { state: "failed" })] })).toMatchObject([
      { do: "move-run", to: "completed" },
    ]);
  });

  test.each([
    ["at the start", 0, [], 0, { purpose: "evaluate", step: 0, groupSize: 1 }],
    ["not twice", 0, [done(0, "evaluate")], 0, { purpose: "train", step: 1 }],
    [
      "not again after it could not be measured",
      0,
      [done(0, "evaluate", { state: "failed" })],
      0,
      { purpose: "train" },
    ],
    ["not between when every is 0", 2, [done(2)], 0, { purpose: "train", step: 3 }],
    ["every second version", 2, [done(2)], 2, { purpose: "evaluate", step: 2 }],
    ["at the end", 3, [done(3)], 2, { purpose: "evaluate", step: 3 }],
    ["before completion", 3, [done(3), done(3, "evaluate")], 2, { do: "move-run", to: "completed" }],
  ])("evaluates %s", (_, servingVersion, steps, every, expected) => {
    const config = buildConfig({ evaluation: { samples: 4, every } });
    expect(actionsOf({ config, servingVersion, steps })).toMatchObject([expected]);
  });

  test("skips evaluations without held-out instances", () => {
    const config = buildConfig({ evaluation: { samples: 4 } });
    expect(actionsOf({ config, taskSizes: [{ train: 9, evaluate: 0 }] })).toMatchObject([{ purpose: "train" }]);
  });
});

describe("an evaluation run", () => {
  const config = buildConfig({ kind: "evaluate", evaluation: { samples: 4 } });

  test("measures once and is done", () => {
    expect(actionsOf({ config })).toMatchObject([{ do: "create-step", purpose: "evaluate", step: 0 }]);
    expect(actionsOf({ config, steps: [done(0, "evaluate")] })).toMatchObject([
      { do: "move-run", to: "completed", reason: "the evaluation is done" },
    ]);
  });

  test("fails when nothing could be scored, or there is nothing to evaluate", () => {
    expect(actionsOf({ config, steps: [done(0, "evaluate", { state: "failed" })] })).toMatchObject([
      { do: "move-run", to: "failed", reason: "no rollout of the evaluation was scored" },
    ]);
    expect(actionsOf({ config: buildConfig({ kind: "evaluate" }) })).toMatchObject([{ do: "move-run", to: "failed" }]);
  });
});

describe("a gathered step", () => {
  const ended = (rollouts: RolloutSnapshot[], over: Partial<RunSnapshot> = {}, step = buildStep()) =>
    actionsOf({ steps: [step], rollouts, ...over });

  test("is updated once every rollout is settled", () => {
    expect(ended([scored(), buildRollout({ state: "active", leaseUntil: now + 9 })])).toEqual([]);
    expect(ended([scored(), lost()])).toEqual([{ do: "begin-update", stepId: "step-1" }]);
  });

  test("an update whose lease is past is sent again", () => {
    expect(ended([], {}, buildStep({ state: "updating", updateLeaseUntil: now }))).toEqual([
      { do: "redeliver-update", stepId: "step-1" },
    ]);
  });

  test("without a score makes no update and says why", () => {
    const reason = "no rollout was scored: 2 × sandbox lost, 1 × cancelled";
    const rollouts = [lost(), lost(), lost({ outcome: "cancelled", ending: "cancelled" })];
    expect(ended(rollouts)).toEqual([
      { do: "end-step", stepId: "step-1", from: "gathering", to: "failed", reason },
      { do: "note", level: "warning", message: `Step 1 made no update: ${reason}` },
    ]);
  });

  test("a reward beside a failed ending, or one that is no number, is no score", () => {
    expect(ended([lost({ outcome: "completed", reward: 1 })])).toMatchObject([{ to: "failed" }, {}]);
    expect(ended([scored({ reward: Number.NaN })])).toMatchObject([{ to: "failed" }, {}]);
  });

  test("under drop-group an incomplete group trains nothing", () => {
    const config = buildConfig({ algorithm: { groupPolicy: "drop-group" } });
    const group = [scored(), lost()];
    const reason = "every group was dropped: 1 × finished, 1 × sandbox lost";
    expect(ended(group, { config })).toMatchObject([{ to: "failed", reason }, { do: "note" }]);
    expect(ended([...group, scored({ groupId: "group-2" })], { config })).toMatchObject([{ do: "begin-update" }]);
  });

  test("three in a row without a score fail the run; one update between does not", () => {
    const failed = (step: number) => done(step, "train", { state: "failed" });
    expect(actionsOf({ config: buildConfig({ budget: { steps: 9 } }), steps: [failed(1), failed(2)] })).toMatchObject([
      { do: "create-step", step: 3 },
    ]);
    expect(actionsOf({ steps: [failed(1), failed(2), failed(3)] })).toMatchObject([
      { do: "move-run", to: "failed", reason: "3 steps in a row had no scored rollout to train" },
    ]);
    const mixed = [failed(1), failed(2), done(3), failed(4)];
    expect(actionsOf({ config: buildConfig({ budget: { steps: 9 } }), servingVersion: 3, steps: mixed })).toMatchObject(
      [{ do: "create-step", step: 5 }],
    );
  });

  test("an evaluation is done without an update", () => {
    const step = buildStep({ purpose: "evaluate", step: 0 });
    expect(ended([scored(), lost()], {}, step)).toEqual([
      { do: "end-step", stepId: "step-1", from: "gathering", to: "done", reason: null },
    ]);
    expect(ended([lost()], {}, step)).toMatchObject([{ to: "failed" }, { do: "note" }]);
  });
});

describe("a driven run", () => {
  const config = buildConfig({ stepSource: "driven", evaluation: { samples: 4 } });
  const request: BatchRequestSnapshot = {
    batchId: "batch-1",
    trainerStep: 7,
    groups: [{ taskSet: 0, split: "train", instanceIndex: 3 }],
    groupSize: 4,
    deadlineAt: null,
  };

  test("makes no step of its own, and one for every request, also while others are open", () => {
    expect(actionsOf({ config })).toEqual([]);
    expect(
      actionsOf({
        config,
        steps: [buildStep({ source: "driven" })],
        rollouts: [buildRollout({ notBefore: now + 5 })],
        batchRequests: [request],
      }),
    ).toEqual([
      {
        do: "create-step",
        purpose: "train",
        step: 7,
        source: "driven",
        batchId: "batch-1",
        groups: request.groups,
        groupSize: 4,
      },
    ]);
  });

  test("ends a step when all of it is settled, scored or not, and never updates", () => {
    const steps = [buildStep({ source: "driven" })];
    expect(actionsOf({ config, steps, rollouts: [lost()] })).toEqual([
      { do: "end-step", stepId: "step-1", from: "gathering", to: "done", reason: null },
    ]);
  });

  test("pauses when its trainer's lease is past, and is woken for that", () => {
    const snapshot = (trainerLeaseUntil: number) => buildSnapshot({ config, trainerLeaseUntil });
    expect(plan(snapshot(now + 5), counts(9))).toEqual({ actions: [], wakeAt: now + 5 });
    expect(plan(snapshot(now), counts(9)).actions).toMatchObject([{ do: "move-run", to: "pausing" }]);
  });

  test("completes after the budget's last trainer step", () => {
    expect(actionsOf({ config, steps: [done(3, "train", { source: "driven" })] })).toMatchObject([
      { do: "move-run", to: "completed", reason: "the trainer's 3 steps are done" },
    ]);
  });
});
