/** A step whose every sandbox was refused ends its run at once; a step with any other ending does not. */
import type { RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import { expect, test } from "vitest";
import {
  buildConfig,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
  lost,
  scored,
} from "../testing/build-snapshot.ts";
import { plan } from "./plan.ts";

const image = "image registry.example/none:1 can't be had: not found; build it, or name one that is there";
const refused = (over: Partial<RolloutSnapshot> = {}) =>
  lost({ stage: "init", ending: "sandbox_refused", reason: image, ...over });
const actionsOf = (over: Partial<RunSnapshot>) => plan(buildSnapshot(over), counts(100)).actions;
const four = (last: RolloutSnapshot) => [refused(), refused({ rolloutId: "r2" }), refused({ rolloutId: "r3" }), last];
const isEnd = { do: "move-run", from: "running", to: "failed" } as const;

test("the run fails after one step, with the image and what to do", () => {
  const other = refused({ rolloutId: "r4", reason: "image other:1 can't be had" });
  const actions = actionsOf({ steps: [buildStep()], rollouts: four(other) });
  expect(actions).toEqual([
    {
      ...{ do: "end-step", stepId: "step-1", from: "gathering", to: "failed" },
      reason: "no rollout was scored: 4 × no sandbox",
    },
    { do: "note", level: "warning", message: "Step 1 made no update: no rollout was scored: 4 × no sandbox" },
    { ...isEnd, reason: `no sandbox could be had for any rollout of step 1: ${image}` },
  ]);
});

test("one that a person cancelled changes nothing; one that was scored, or lost, does", () => {
  const end = (last: RolloutSnapshot) => actionsOf({ steps: [buildStep()], rollouts: four(last) });
  const cancelled = refused({ rolloutId: "r4", outcome: "cancelled", ending: "cancelled", reason: "cancelled" });
  expect(end(cancelled)).toContainEqual(expect.objectContaining(isEnd));
  expect(end(scored({ rolloutId: "r4" }))).toEqual([{ do: "begin-update", stepId: "step-1" }]);
  expect(end(lost({ rolloutId: "r4" }))).toMatchObject([{ do: "end-step", to: "failed" }, { do: "note" }]);
  expect(end(buildRollout({ rolloutId: "r4", stage: "run", state: "active", leaseUntil: 1_009_000 }))).toEqual([]);
});

test("of an asynchronous run: after the groups that it may draw in their place, and what is under way ends with it", () => {
  const config = buildConfig({ dispatcher: { name: "async", maxStaleness: 1 }, budget: { steps: 9 } });
  const step = buildStep();
  // Three batches of two groups of two.
  const rollouts = Array.from({ length: 12 }, (_, at) => refused({ rolloutId: `r${at}`, groupId: `g${at >> 1}` }));
  const next = buildRollout({ rolloutId: "late", groupId: "late" });
  const actions = actionsOf({ config, steps: [step], rollouts: [...rollouts, next] });
  expect(actions).toContainEqual(expect.objectContaining({ do: "settle", rolloutId: "late", outcome: "cancelled" }));
  expect(actions.filter((action) => action.do === "end-step")).toMatchObject([{ stepId: "step-1", to: "failed" }]);
  expect(actions.at(-1)).toMatchObject({ ...isEnd, reason: expect.stringContaining(image) });
});

test("an evaluation run says the same; a training run goes on to its first step", () => {
  const step = buildStep({ purpose: "evaluate", step: 0 });
  const rollouts = four(refused({ rolloutId: "r4" }));
  const evaluation = { samples: 4 };
  expect(
    actionsOf({ config: buildConfig({ kind: "evaluate", evaluation }), steps: [step], rollouts }).at(-1),
  ).toMatchObject({
    ...isEnd,
    reason: `no sandbox could be had for any rollout of the evaluation of version 0: ${image}`,
  });
  expect(actionsOf({ config: buildConfig({ evaluation }), steps: [step], rollouts })).not.toContainEqual(
    expect.objectContaining(isEnd),
  );
});
