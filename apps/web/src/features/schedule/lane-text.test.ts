import { expect, test } from "vitest";
import { laneText } from "./lane-text.ts";

/** One rollout: an attempt that was lost in its run stage, and another that runs still. */
const schedule = {
  toMs: 10_000,
  groups: [{ groupId: "g", taskSet: "key-chain", instanceId: "train-7" }],
  rollouts: {
    ...{ rolloutId: ["r"], group: [0], sample: [2], attempt: [2], ending: [null], settledMs: [null] },
    state: ["active" as const],
  },
  spans: {
    ...{ rollout: [0, 0, 0, 0], attempt: [1, 1, 2, 2], stage: [0, 1, 0, 1] },
    readyMs: [1_000, 2_000, 4_000, 6_000],
    startedMs: [1_500, 2_000, 5_000, 7_000],
    endedMs: [2_000, 4_000, 6_000, null],
  },
};
const layout = { spansOf: [[0, 1, 2, 3]] };
const at = (ms: number | null) => laneText(schedule, layout, 0, ms).replace("train-7 sample 3: ", "");

test("a lane says what its rollout does at a moment, and whether that was lost", () => {
  expect(at(null)).toBe("active");
  expect(at(500)).toBe("not there yet");
  expect(at(1_200)).toBe("waits for init for 500\u2009ms, attempt 1 (lost)");
  expect(at(3_000)).toBe("runs for 2.0\u2009s, attempt 1 (lost)");
  expect(at(5_500)).toBe("is set up for 1.0\u2009s, attempt 2");
  expect(at(9_000)).toBe("runs for 3.0\u2009s, attempt 2");
});
