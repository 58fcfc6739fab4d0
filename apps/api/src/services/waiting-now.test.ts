import type { RunSnapshot } from "@rolldeck/contracts/plan";
import { buildConfig, buildRollout, buildSnapshot, buildStep, counts } from "@rolldeck/dispatch/testing/build-snapshot";
import { expect, test } from "vitest";
import { waitingNow } from "./waiting-now.ts";

const bounds = { init: 8, run: 16, evaluate: 4 };
type Place = Parameters<typeof buildRollout>[0];
const rollouts = (...places: [number, NonNullable<Place>][]) =>
  places
    .flatMap(([count, place]) => Array.from({ length: count }, () => place))
    .map((place, at) =>
      buildRollout({ leaseUntil: place.state === "active" ? 2_000_000 : null, ...place, rolloutId: `rollout-${at}` }),
    );
const waits = (given: RunSnapshot, grants = counts(100)) =>
  waitingNow(given, grants).waits.map(({ stage, cause, count, fix }) => [stage, cause, count, fix]);
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
  const [wait] = waitingNow(given, counts(100)).waits;
  expect(wait?.oldestAt).toBe(new Date(800_000).toISOString());
  expect(wait?.detail).toMatch(/^4 rollouts are in evaluate/);
});

test("names the pool that is used up, and other runs where they hold it", () => {
  const line = rollouts([2, { stage: "init", state: "waiting" }]);
  expect(waits(snapshot(line), { ...counts(100), initSlot: 0 })).toEqual([
    ["init", "grant", 2, "Raise the run's priority or weight, or enlarge the pool."],
  ]);
  const held = { ...counts(0), initSlot: 1 };
  const busy = rollouts(
    [1, { stage: "init", state: "active", holds: ["initSlot"] }],
    [2, { stage: "init", state: "waiting" }],
  );
  expect(waits(snapshot(busy, { held }), { ...counts(100), initSlot: 1 })).toEqual([
    ["init", "init-slot", 2, "Enlarge the pool of init slots on the Schedule page."],
  ]);
});

test("what the next plan admits does not wait; of a run that is paused all do", () => {
  const line = rollouts([2, { stage: "init", state: "waiting" }]);
  expect(waits(snapshot(line))).toEqual([]);
  expect(waits(snapshot(line, { status: "paused" }))).toEqual([["init", "run", 2, "Resume the run."]]);
});
