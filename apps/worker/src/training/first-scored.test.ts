import { expect, test } from "vitest";
import { firstScored } from "./first-scored.ts";

const rollout = (groupId: string, settledAtMs: number, reward: number | null) => ({ groupId, settledAtMs, reward });

test("each group keeps those that were scored first, in their order, and all that were not scored", () => {
  const rollouts = [
    rollout("a", 30, 1),
    rollout("a", 10, 0),
    rollout("a", 5, null),
    rollout("b", 99, 1),
    rollout("a", 20, 1),
  ];
  expect(firstScored(rollouts, 2)).toEqual([
    rollout("a", 10, 0),
    rollout("a", 5, null),
    rollout("b", 99, 1),
    rollout("a", 20, 1),
  ]);
  expect(firstScored(rollouts, 3)).toEqual(rollouts);
});
