import { expect, test } from "vitest";
import { describeEvent } from "./describe-event.ts";

test("a failed rollout is an error with its reason and leads to the rollout", () => {
  expect(
    describeEvent({
      type: "rollout-status",
      rolloutId: "01kv8r7q0000abcdefghijkmnp",
      attempt: 3,
      stage: "run",
      state: "settled",
      claim: 4,
      outcome: "failed",
      ending: "worker_lost",
      reward: null,
      success: null,
      reason: "lease past three times",
    }),
  ).toEqual({
    text: "rollout …ijkmnp attempt 3 worker lost: lease past three times",
    level: "error",
    rolloutId: "01kv8r7q0000abcdefghijkmnp",
  });
});

test("counts agree with their nouns", () => {
  const step = { type: "step-created", stepId: "s", step: 1, purpose: "train" } as const;
  expect(describeEvent({ ...step, groups: 1, rollouts: 1 }).text).toBe("step 1 created: 1 group, 1 rollout");
  expect(describeEvent({ ...step, groups: 16, rollouts: 128 }).text).toBe("step 1 created: 16 groups, 128 rollouts");
});

test("tool errors are warnings, notes keep their level", () => {
  expect(
    describeEvent({ type: "tools-ended", rolloutId: "abcdefghij", attempt: 1, turn: 2, durationMs: 3, errors: 1 })
      .level,
  ).toBe("warning");
  expect(describeEvent({ type: "note", level: "error", message: "<b>x</b>" })).toEqual({
    text: "<b>x</b>",
    level: "error",
  });
});

test("a model is adopted after a restart only where there was one", () => {
  const made = { type: "model-adopted", bootId: "b", checkpoint: null, replayed: 0 } as const;
  expect(describeEvent({ ...made, fresh: true })).toEqual({ text: "model created", level: "info" });
  expect(describeEvent({ ...made, fresh: true, checkpoint: "warm-1" }).text).toBe("model created from warm-1");
  expect(describeEvent({ ...made, fresh: false, replayed: 2 })).toEqual({
    text: "model adopted after a restart, 2 steps replayed",
    level: "warning",
  });
});

test("what people and the planner change of dispatch is said in words", () => {
  const lines = [
    describeEvent({
      type: "group-set-aside",
      groupId: "01kv8r7q0000abcdefghijkmnp",
      stepId: "s",
      as: "not-needed",
      cancelled: 3,
      reason: "the step has what it needs",
    }),
    describeEvent({ type: "groups-added", stepId: "s", step: 4, groups: 2, rollouts: 16, replacing: 1 }),
    describeEvent({ type: "groups-moved", fromStepId: "s", toStepId: "t", step: 5, groupIds: ["a"] }),
    describeEvent({ type: "run-limit-changed", from: null, to: 48, reason: "requests wait in the engine" }),
    describeEvent({ type: "dispatcher-changed", change: { weight: 2 }, by: "the owner" }),
    describeEvent({ type: "drain-changed", draining: true, by: "the owner", reason: null }),
    describeEvent({ type: "hold-changed", part: "group", id: "01kv8r7q0000abcdefghijkmnp", held: true, by: "ci" }),
  ];
  expect(lines.map(({ text }) => text)).toEqual([
    "group …ijkmnp set aside as not needed, 3 rollouts cancelled: the step has what it needs",
    "step 4: 2 groups and 16 rollouts more, 1 in place of groups set aside",
    "1 group moved to step 5",
    "rollouts that run at once: the bound → 48: requests wait in the engine",
    'the owner changed the dispatcher: {"weight":2}',
    "the owner drains the run: nothing new is started",
    "ci holds group …ijkmnp",
  ]);
});

test("checkpoints are removed, lost, pinned, served and gone back to, and by whom", () => {
  const restored = { type: "run-restored", version: 90, by: "the owner" } as const;
  const lines = [
    describeEvent({ type: "checkpoint-removed", version: 10, name: "v10", bytes: null }),
    describeEvent({ type: "checkpoint-lost", version: 15, name: "v15", reason: "a file is damaged" }),
    describeEvent({ type: "checkpoint-pinned", version: 20, pinned: true, by: "ci" }),
    describeEvent({ type: "checkpoint-served", version: 20, served: true, by: "ci" }),
    describeEvent({ type: "checkpoint-served", version: 20, served: false, by: "the owner" }),
    describeEvent({ ...restored, supersededRunId: "01kv8r7q0000abcdefghijkmnp", lastStep: 140 }),
    describeEvent({ ...restored, supersededRunId: null, lastStep: null }),
  ];
  expect(lines.map(({ text }) => text)).toEqual([
    "checkpoint v10 of version 10 removed",
    "checkpoint v15 of version 15 can't be loaded any more: a file is damaged",
    "ci pins the checkpoint of version 20",
    "ci serves the checkpoint of version 20",
    "the owner no longer serves the checkpoint of version 20",
    "the owner set the run back to version 90; its steps 91 to 140 are run …ijkmnp now",
    "the owner set the run back to version 90",
  ]);
});
