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
