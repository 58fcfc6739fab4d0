import { expect, test } from "vitest";
import { staleness } from "./staleness.ts";

const rollout = (groupId: string, firstVersion: number | null) => ({ groupId, firstVersion });

test("a group is as stale as the oldest of its rollouts; what is not known is left out (fault 47)", () => {
  const rollouts = [rollout("a", 4), rollout("a", 2), rollout("b", 4), rollout("b", null), rollout("c", null)];
  expect(staleness(rollouts, 4)).toEqual({ "staleness/mean": 1, "staleness/max": 2 });
  expect(staleness([rollout("a", 3)], 3)).toEqual({ "staleness/mean": 0, "staleness/max": 0 });
  expect(staleness([rollout("a", null)], 3)).toEqual({});
});
