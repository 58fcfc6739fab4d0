import type { Trajectory } from "@rolldeck/agent/core/trajectory";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { describe, expect, test } from "vitest";
import { failedMove } from "../stage-job.ts";
import { finishedRollout } from "./evaluate-stage.ts";

const turn = {
  turn: 0,
  promptRanges: [{ start: 0, end: 1 }],
  promptTokens: 1,
  sampledSegment: 1,
  sampledTokens: 1,
  stopReason: "stop" as const,
  policyVersion: 0,
  cacheHitTokens: 0,
  sampleMs: 1,
  parseError: null,
  thread: "",
  notes: [],
  nextRanges: null,
};
const trajectory: Trajectory = {
  segments: [],
  turns: [
    {
      ...turn,
      calls: [
        { index: 0, name: "get", arguments: { k: "a" }, raw: "" },
        { index: 1, name: "get", arguments: { k: "b" }, raw: "" },
        { index: 2, name: "finish", arguments: { answer: "7" }, raw: "" },
      ],
      results: [
        { index: 0, output: "b", error: null, durationMs: 1 },
        { index: 1, output: "", error: { code: "timeout", message: "" }, durationMs: 1 },
        null,
      ],
    },
  ],
};

test("the verifier sees what rows tell: every call in order, and whether it failed", () => {
  const { rollout } = finishedRollout({ ending: "finish_tool", finalAnswer: "7" }, trajectory);
  expect(rollout).toEqual({
    ending: "finish_tool",
    finalAnswer: "7",
    turns: 1,
    toolCalls: [
      { name: "get", arguments: { k: "a" }, failed: false },
      { name: "get", arguments: { k: "b" }, failed: true },
      { name: "finish", arguments: { answer: "7" }, failed: false },
    ],
  });
});

test("a rollout without an ending can't be graded", () => {
  expect(() => finishedRollout({ ending: null, finalAnswer: null }, trajectory)).toThrow(BoundaryError);
});

describe("what a stage's failure becomes", () => {
  test.each([
    ["run", "model-server", "infrastructure", "model_server"],
    ["run", "sandbox", "infrastructure", "sandbox_lost"],
    ["run", "infrastructure", "infrastructure", "infrastructure"],
    ["init", "sandbox", "infrastructure", "sandbox_lost"],
    ["evaluate", "verifier", "evaluate", undefined],
    // Grading is tried again in place whatever broke it: the rollout itself is fine.
    ["evaluate", "infrastructure", "evaluate", undefined],
  ] as const)("%s stage, %s", (stage, boundary, failure, ending) => {
    const move = failedMove(stage, new BoundaryError(boundary, "x", "it broke"));
    expect(move).toEqual({ move: "release", reason: "it broke", failure, ...(ending && { ending }) });
  });
  test("a bug counts as infrastructure, and its text is bounded", () => {
    const move = failedMove("run", new TypeError("x".repeat(5_000)));
    expect(move).toMatchObject({ failure: "infrastructure", ending: "infrastructure" });
    expect(move.move === "release" ? move.reason.length : 0).toBeLessThanOrEqual(480);
  });
});
