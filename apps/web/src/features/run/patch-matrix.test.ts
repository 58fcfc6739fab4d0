import type { Matrix } from "@rolldeck/contracts/api/runs";
import type { EventBody, RunEvent } from "@rolldeck/contracts/events";
import { expect, test } from "vitest";
import { patchMatrix } from "./patch-matrix.ts";

const cell = (rolloutId: string, sample: number): Matrix["groups"][number]["cells"][number] => ({
  rolloutId,
  sample,
  attempt: 1,
  stage: "run",
  state: "active",
  outcome: null,
  ending: null,
  reward: null,
  success: null,
  turns: 2,
  flags: [],
});
const matrix: Matrix = {
  runId: "run",
  purpose: "train",
  step: 1,
  state: "gathering",
  steps: [1],
  groups: [
    {
      groupId: "g1",
      taskSet: "t",
      instanceId: "i1",
      setAside: null,
      held: false,
      mean: null,
      cells: [cell("a", 0), cell("b", 1)],
    },
    { groupId: "g2", taskSet: "t", instanceId: "i2", setAside: null, held: false, mean: null, cells: [cell("c", 0)] },
  ],
};
const event = (body: EventBody, seq = 1): RunEvent => ({ runId: "run", seq, at: "2026-11-29T00:00:00Z", body });
const settled = (rolloutId: string, reward: number | null): EventBody => ({
  type: "rollout-status",
  rolloutId,
  attempt: 1,
  stage: "evaluate",
  state: "settled",
  claim: 3,
  outcome: reward === null ? "failed" : "completed",
  ending: reward === null ? "worker_lost" : "finish_tool",
  reward,
  success: reward === null ? null : reward > 0,
  reason: null,
});

test("only the touched group changes identity, and its mean is over scored rollouts alone", () => {
  const next = patchMatrix(matrix, [event(settled("a", 1)), event(settled("b", null), 2)]);
  expect(next.groups[0]?.mean).toBe(1);
  expect(next.groups[0]?.cells[1]).toMatchObject({ outcome: "failed", reward: null });
  expect(next.groups[1]).toBe(matrix.groups[1]);
});

test("events about nothing shown leave the matrix as it is", () => {
  expect(patchMatrix(matrix, [event({ type: "note", level: "info", message: "x" })])).toBe(matrix);
  expect(patchMatrix(matrix, [event(settled("elsewhere", 1))])).toBe(matrix);
});

test("turns count up, a new attempt starts again", () => {
  const turn: EventBody = {
    type: "turn-sampled",
    rolloutId: "a",
    attempt: 1,
    turn: 4,
    promptTokens: 1,
    sampledTokens: 1,
    policyVersion: 0,
    sampleMs: 1,
    calls: [],
    stopReason: "stop",
  };
  expect(patchMatrix(matrix, [event(turn)]).groups[0]?.cells[0]?.turns).toBe(5);
  const again: EventBody = {
    type: "rollout-status",
    rolloutId: "a",
    attempt: 2,
    stage: "init",
    state: "waiting",
    claim: 3,
    outcome: null,
    ending: null,
    reward: null,
    success: null,
    reason: "worker lost",
  };
  expect(patchMatrix(matrix, [event(again)]).groups[0]?.cells[0]).toMatchObject({
    attempt: 2,
    turns: 0,
    state: "waiting",
  });
  const moved: EventBody = { type: "rollouts-moved", stage: "run", state: "queued", rolloutIds: ["c"] };
  expect(patchMatrix(matrix, [event(moved)]).groups[1]?.cells[0]?.state).toBe("queued");
});
