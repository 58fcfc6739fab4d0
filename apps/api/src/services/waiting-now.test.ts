import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import type { RunSnapshot } from "@rolldeck/contracts/plan";
import { buildConfig, buildRollout, buildSnapshot, buildStep, counts } from "@rolldeck/dispatch/testing/build-snapshot";
import { describe, expect, test } from "vitest";
import { waitingNow } from "./waiting-now.ts";

const bounds = { init: 8, run: 16, evaluate: 4 };
type Place = Parameters<typeof buildRollout>[0];
const rollouts = (...places: [number, NonNullable<Place>][]) =>
  places
    .flatMap(([count, place]) => Array.from({ length: count }, () => place))
    .map((place, at) =>
      buildRollout({ leaseUntil: place.state === "active" ? 2_000_000 : null, ...place, rolloutId: `rollout-${at}` }),
    );
/** A pool of init slots; of its runs those are named that say so. */
const initSlots = (over: Partial<PoolInfo>, ...runs: Partial<PoolInfo["runs"][number]>[]): PoolInfo => ({
  resource: "initSlot",
  size: 8,
  used: 0,
  kept: 0,
  evaluationReserve: 0,
  quotas: [],
  runs: runs.map((run) => ({
    ...{ runId: "other", name: "x", project: "north", status: "running", ordinal: 1, priority: 0, weight: 1 },
    ...{ held: 0, waiting: 0, granted: null, ...run },
  })),
  ...over,
});
const waits = (given: RunSnapshot, grants = counts(100), pools: PoolInfo[] = []) =>
  waitingNow(given, grants, pools).waits.map(({ stage, cause, count, fix }) => [stage, cause, count, fix]);
const snapshot = (rows: RunSnapshot["rollouts"], over: Partial<RunSnapshot> = {}) =>
  buildSnapshot({
    config: buildConfig({ dispatcher: { name: "pipeline", bounds } }),
    steps: [buildStep()],
    rollouts: rows,
    ...over,
  });

const grading = rollouts(
  [4, { stage: "evaluate", state: "active", holds: ["gradeSlot"] }],
  [3, { stage: "evaluate", state: "waiting", readyAt: 900_000 }],
  [1, { stage: "evaluate", state: "waiting", readyAt: 800_000 }],
);

test("counts who waits for the run's own bound, since when, and says what to raise", () => {
  const given = snapshot(grading);
  expect(waits(given)).toEqual([["evaluate", "bound", 4, "Raise bounds.evaluate, now 4."]]);
  const [wait] = waitingNow(given, counts(100), []).waits;
  expect(wait?.oldestAt).toBe(new Date(800_000).toISOString());
  expect(wait?.detail).toMatch(/^4 rollouts are in evaluate/);
});

describe("where a lease is missing, what bounds the run's share is named", () => {
  const own = { runId: "run", project: "south", waiting: 2 };
  const enlarge = "Enlarge the pool of init slots on the Schedule page, now 8.";
  const shared = "Other runs have 6 of the 8 init slots: raise this run's priority or weight, or enlarge the pool.";
  const whole = "Project south has its whole quota of 4 init slots: raise it on the Schedule page";
  const quotas = (held: number) => [{ project: "south", quota: 4, held }];
  test.each<[string, number, PoolInfo, string]>([
    ["all of the pool is its own", 8, initSlots({ used: 8 }, { ...own, held: 8, granted: 8 }), enlarge],
    ["others hold the rest", 2, initSlots({ used: 8 }, { held: 6 }, { ...own, held: 2, granted: 2 }), shared],
    [
      "others were granted the rest",
      2,
      initSlots({ used: 2 }, { granted: 6 }, { ...own, held: 2, granted: 2 }),
      shared,
    ],
    ["others hold all", 0, initSlots({ used: 8 }, { held: 8 }, { ...own, granted: 0 }), shared.replace("6", "8")],
    ["its project has its quota", 4, initSlots({ quotas: quotas(4) }, { held: 1 }, { ...own, held: 4 }), `${whole}.`],
    [
      "runs of its project have the quota",
      1,
      initSlots({ quotas: quotas(2) }, { held: 1, granted: 3, project: "south" }, { ...own, held: 1, granted: 1 }),
      `${whole}, or raise this run's priority or weight.`,
    ],
    [
      "its project has room in its quota",
      2,
      initSlots({ quotas: quotas(2) }, { held: 6 }, { ...own, held: 2, granted: 2 }),
      shared,
    ],
    [
      "the rest is kept for evaluation",
      6,
      initSlots({ used: 6, evaluationReserve: 2 }, { ...own, held: 6, granted: 6 }),
      "The last 2 of the 8 init slots are kept for evaluation: lower the reserve, or enlarge the pool.",
    ],
    [
      "the rest is kept for people",
      6,
      initSlots({ used: 6, kept: 2 }, { ...own, held: 6, granted: 6 }),
      "2 of the 8 init slots are kept for people: close those that nobody needs, or enlarge the pool.",
    ],
  ])("%s", (_what, granted, pool, fix) => {
    const busy = rollouts(
      [granted, { stage: "init", state: "active", holds: ["initSlot"] }],
      [2, { stage: "init", state: "waiting" }],
    );
    const config = buildConfig({ dispatcher: { name: "pipeline", bounds: { ...bounds, init: 64 } } });
    const given = snapshot(busy, { config, held: { ...counts(0), initSlot: granted } });
    expect(waits(given, { ...counts(100), initSlot: granted }, [pool])).toEqual([
      ["init", granted === 0 ? "grant" : "init-slot", 2, fix],
    ]);
  });
});

test("what the next plan admits does not wait; of a run that is paused all do", () => {
  const line = rollouts([2, { stage: "init", state: "waiting" }]);
  expect(waits(snapshot(line))).toEqual([]);
  expect(waits(snapshot(line, { status: "paused" }))).toEqual([["init", "run", 2, "Resume the run."]]);
});
