import { describe, expect, it } from "vitest";
import { buildTrajectory } from "../testing/build-trajectory.ts";
import { countBadCalls, logprobGap, type SettledRollout, sampledEntropy, stepMetrics } from "./step-metrics.ts";

const settled = (overrides: Partial<SettledRollout> = {}): SettledRollout => ({
  groupId: "g",
  outcome: "completed",
  ending: "finish_tool",
  reward: 1,
  success: true,
  turns: 2,
  sampledTokens: 10,
  ...overrides,
});

describe("stepMetrics", () => {
  it("counts by the definitions, unscored rollouts apart", () => {
    const metrics = stepMetrics({
      purpose: "train",
      rollouts: [
        settled(),
        settled({ reward: 0, success: false, ending: "turn_limit", turns: 4, sampledTokens: 30 }),
        settled({ groupId: "h", outcome: "failed", ending: "sandbox_lost", reward: null, success: null, turns: 0 }),
        settled({ groupId: "h", reward: 0.5, success: false }),
      ],
      entropy: { sum: 6, tokens: 12 },
      badCalls: 6,
      logprobGap: 1e-5,
      trainer: { "policy/loss": -0.25, "policy/grad-norm": Number.NaN },
      gatherSeconds: 2,
      updateSeconds: 3,
    });
    expect(metrics).toEqual({
      "reward/mean": 0.5,
      "reward/success": 1 / 3,
      "policy/entropy": 0.5,
      "policy/logprob-gap": 1e-5,
      "policy/loss": -0.25,
      "groups/zero-variance": 0.5,
      "rollouts/turns": 2,
      "rollouts/sampled-tokens": 15,
      "rollouts/cut": 0.25,
      "rollouts/no-finish": 0.25,
      "rollouts/bad-calls": 1.5,
      "rollouts/failed": 0.25,
      "throughput/tokens-per-second": 30,
      "time/gather": 2,
      "time/update": 3,
    });
  });
  it("leaves out what has no samples, never 0 and never NaN", () => {
    expect(stepMetrics({ purpose: "train", rollouts: [] })).toEqual({});
    const failed = settled({ outcome: "failed", ending: "verifier_error", reward: null, success: null });
    const metrics = stepMetrics({
      purpose: "train",
      rollouts: [failed],
      gatherSeconds: 0,
      entropy: { sum: 0, tokens: 0 },
    });
    expect(metrics["reward/mean"]).toBeUndefined();
    expect(metrics["throughput/tokens-per-second"]).toBeUndefined();
    expect(metrics["rollouts/failed"]).toBe(1);
    expect(Object.values(metrics).every(Number.isFinite)).toBe(true);
  });
  it("names held-out numbers apart", () => {
    expect(stepMetrics({ purpose: "evaluate", rollouts: [settled(), settled({ reward: 0, success: false })] })).toEqual(
      {
        "evaluate/reward": 0.5,
        "evaluate/success": 0.5,
      },
    );
  });
});

describe("token statistics", () => {
  const trajectory = buildTrajectory([
    { prompt: [1], sampled: [2, 3], logprobs: [-1, -2] },
    { prompt: [1, 2, 3, 9], sampled: [4], logprobs: [Number.NaN] },
  ]);
  it("estimates entropy from sampled tokens with a logprob", () => {
    expect(sampledEntropy(trajectory.segments)).toEqual({ sum: 3, tokens: 2 });
  });
  it("measures the gap on trained tokens only", () => {
    const row = { ranges: [{ start: 0, end: 5 }], mask: [1, 0, 2, -1, 1, 1, 1, 6] };
    expect(logprobGap(row, trajectory, [-1.25, -2.5, 7, 7])).toBeCloseTo(0.5, 12);
    expect(logprobGap({ ...row, mask: [5, 0] }, trajectory, [])).toBeNull();
    expect(() => logprobGap(row, trajectory, [])).toThrow(RangeError);
  });
});

describe("countBadCalls", () => {
  const call = { index: 0, name: "get", arguments: {}, raw: "" };
  const ended = (code: string | null) => ({
    index: 0,
    output: "",
    error: code === null ? null : { code, message: code },
    durationMs: 1,
  });
  const turn = { calls: [call, call, call], parseError: null, stopReason: "stop" as const };
  it("counts calls that could not run and unreadable turns (fault 7), not failures of tools or cuts", () => {
    const results = [ended("unknown_tool"), ended("bad_arguments"), ended("timeout")];
    expect(countBadCalls([{ ...turn, results }])).toBe(2);
    expect(countBadCalls([{ ...turn, results: [ended(null), null, null] }])).toBe(0);
    expect(countBadCalls([{ calls: [], parseError: "no call", stopReason: "stop", results: [] }])).toBe(1);
    expect(countBadCalls([{ calls: [], parseError: "cut", stopReason: "length", results: [] }])).toBe(0);
    expect(countBadCalls([{ calls: [], parseError: null, stopReason: "stop", results: [] }])).toBe(0);
  });
});
