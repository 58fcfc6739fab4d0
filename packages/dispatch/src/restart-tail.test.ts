import type { RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import { buildConfig, buildGroup, buildRollout, buildSnapshot, buildStep, counts } from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";

const now = 1_000_000;
const config = buildConfig({ dispatcher: { restartTail: 2, bounds: { run: 2 } } });
const groups = [buildGroup({ expectedMs: { init: 5, run: 10_000, evaluate: 5 } })];
const running = (ranMs: number, over: Partial<RolloutSnapshot> = {}) =>
  buildRollout({ stage: "run", state: "active", stageStartedAt: now - ranMs, leaseUntil: now + 90_000, ...over });
const planOf = (rollouts: RolloutSnapshot[], over: Partial<RunSnapshot> = {}) =>
  plan(buildSnapshot({ config, groups, steps: [buildStep()], rollouts, ...over }), counts(9));
const restarted = (rollouts: RolloutSnapshot[], over: Partial<RunSnapshot> = {}) =>
  planOf(rollouts, over).actions.filter((action) => action.do === "retry");

describe("a rollout that runs far longer than its instance did before", () => {
  test("is begun anew", () => {
    expect(restarted([running(20_000)])).toEqual([
      {
        do: "retry",
        rolloutId: "rollout-1",
        attempt: 1,
        notBefore: now,
        reason: "restarted: it ran 2.0 times as long as its instance took before",
      },
    ]);
  });

  test("not before its time, which is a timer", () => {
    expect(planOf([running(15_000)])).toEqual({ actions: [], wakeAt: now + 5_000 });
  });

  test("once only", () => {
    expect(restarted([running(90_000, { attempt: 2 })])).toEqual([]);
    expect(restarted([running(90_000, { attempt: 4, firstAttempt: 4 })])).toHaveLength(1);
  });

  test("only while a run slot is idle, the longest overdue first", () => {
    const two = [running(20_000), running(30_000, { rolloutId: "longer" })];
    expect(restarted(two)).toEqual([]);
    const wide = buildConfig({ dispatcher: { restartTail: 2, bounds: { run: 3 } } });
    expect(restarted(two, { config: wide })).toMatchObject([{ rolloutId: "longer" }]);
    expect(restarted([...two, buildRollout({ rolloutId: "line" })], { config: wide })).toEqual([]);
  });

  test("not when nothing is known of its instance, nor while the run drains, nor by default", () => {
    expect(restarted([running(90_000)], { groups: [buildGroup()] })).toEqual([]);
    expect(restarted([running(90_000)], { draining: true })).toEqual([]);
    expect(restarted([running(90_000)], { config: buildConfig() })).toEqual([]);
  });
});
