/** The run's own life: from queued to its end, pauses, budgets and timers. */
import { leaseMs } from "@rolldeck/contracts/jobs";
import type { RunSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
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

const now = 1_000_000;
const planOf = (over: Partial<RunSnapshot>) => plan(buildSnapshot(over), counts(100));
const actionsOf = (over: Partial<RunSnapshot>) => planOf(over).actions;
const absent = { servingVersion: null, modelBootId: null } as const;
const active = (over = {}) => buildRollout({ stage: "run", state: "active", leaseUntil: now + 9_000, ...over });

describe("the way to running", () => {
  test("a queued run is prepared", () => {
    expect(planOf({ status: "queued", ...absent })).toEqual({
      actions: [{ do: "move-run", from: "queued", to: "preparing", reason: null }, { do: "prepare" }],
      wakeAt: now,
    });
  });

  test("while its prepare job is on its way or held there is nothing to do but look again when that lease is past", () => {
    const prepareLeaseUntil = now + 5_000;
    expect(planOf({ status: "preparing", ...absent, prepareLeaseUntil })).toEqual({ actions: [], wakeAt: now + 5_000 });
  });

  test("a lost prepare job is sent again", () => {
    expect(planOf({ status: "preparing", ...absent, prepareLeaseUntil: now })).toEqual({
      actions: [{ do: "prepare" }],
      wakeAt: now + leaseMs,
    });
  });

  test("it runs once a version serves on the backend that answers", () => {
    const toRunning = [{ do: "move-run", from: "preparing", to: "running", reason: null }];
    expect(actionsOf({ status: "preparing" })).toEqual(toRunning);
    expect(actionsOf({ status: "preparing", backendBootId: "boot-2" })).toEqual([{ do: "prepare" }]);
    expect(actionsOf({ status: "preparing", backendBootId: null })).toEqual([{ do: "prepare" }]);
  });

  test("it fails with the reason after too many failures", () => {
    expect(actionsOf({ status: "preparing", ...absent, prepareFailures: 5 })).toEqual([{ do: "prepare" }]);
    expect(actionsOf({ status: "preparing", ...absent, prepareFailures: 1, prepareRefusal: "no such model" })).toEqual([
      { do: "move-run", from: "preparing", to: "failed", reason: "no such model" },
    ]);
    expect(actionsOf({ status: "preparing", ...absent, prepareFailures: 6, prepareReason: "no disk" })).toEqual([
      {
        do: "move-run",
        from: "preparing",
        to: "failed",
        reason: "the model could not be prepared: 6 tries failed, at last because: no disk",
      },
    ]);
  });

  test("a dispatcher that this server does not have fails it", () => {
    const config = buildConfig({ dispatcher: { name: "fastest" } });
    expect(actionsOf({ config })).toEqual([
      { do: "move-run", from: "running", to: "failed", reason: "no dispatcher is named fastest" },
    ]);
  });
});

describe("a backend that comes back as another boot", () => {
  const gone = { backendBootId: "boot-2", steps: [buildStep()], servingVersion: 3 } as const;

  test("is prepared again, and meanwhile nothing that needs the model starts", () => {
    const rollouts = [
      buildRollout({ rolloutId: "a" }),
      buildRollout({ rolloutId: "b", stage: "run" }),
      buildRollout({ rolloutId: "c", stage: "run", state: "active", leaseUntil: now - 1 }),
      buildRollout({ rolloutId: "d", stage: "evaluate", ending: "answer" }),
    ];
    expect(actionsOf({ ...gone, rollouts })).toMatchObject([{ do: "prepare" }, { do: "admit", rolloutId: "d" }]);
  });

  test("no update begins before the model is back", () => {
    const rollouts = [scored()];
    expect(actionsOf({ ...gone, rollouts })).toEqual([{ do: "prepare" }]);
    expect(actionsOf({ ...gone, rollouts, backendBootId: "boot-1" })).toEqual([
      { do: "begin-update", stepId: "step-1" },
    ]);
  });
});

test("a rollout that the plan gives up is not admitted by the same plan", () => {
  const config = buildConfig({ algorithm: { groupPolicy: "drop-group" } });
  const rollouts = [
    lost(),
    buildRollout({ rolloutId: "open" }),
    buildRollout({ rolloutId: "other", groupId: "group-2" }),
  ];
  expect(actionsOf({ config, steps: [buildStep()], rollouts })).toMatchObject([
    { do: "settle", rolloutId: "open" },
    { do: "admit", rolloutId: "other" },
  ]);
});

describe("pausing", () => {
  test("admits nothing and waits for what a worker holds", () => {
    const rollouts = [active(), buildRollout({ rolloutId: "b" })];
    expect(planOf({ status: "pausing", steps: [buildStep()], rollouts })).toEqual({ actions: [], wakeAt: now + 9_000 });
  });

  test("ends when the last lease is past: handed-back and lost stages wait for the run to go on", () => {
    const rollouts = [active({ leaseUntil: now }), buildRollout({ state: "queued", leaseUntil: now - 5 })];
    expect(planOf({ status: "pausing", steps: [buildStep()], rollouts })).toEqual({
      actions: [{ do: "move-run", from: "pausing", to: "paused", reason: null }],
      wakeAt: null,
    });
    const resumed = actionsOf({ steps: [buildStep()], rollouts });
    expect(resumed.map((action) => action.do)).toEqual(["redeliver", "redeliver"]);
  });

  test("finishes an update under way", () => {
    const updating = (updateLeaseUntil: number, updateFailures = 0) =>
      actionsOf({ status: "pausing", steps: [buildStep({ state: "updating", updateLeaseUntil, updateFailures })] });
    expect(updating(now + 1)).toEqual([]);
    expect(updating(now)).toEqual([{ do: "redeliver-update", stepId: "step-1" }]);
    expect(updating(now, 6)).toMatchObject([{ to: "paused" }]);
  });

  test("does not wait for a worker that hangs past its deadline", () => {
    const rollouts = [active({ stageStartedAt: now - 3_700_000 })];
    expect(actionsOf({ status: "pausing", steps: [buildStep()], rollouts })).toMatchObject([{ do: "retry" }]);
  });

  test("a paused run does nothing and sets no timer", () => {
    const rollouts = [active({ leaseUntil: now - 1 })];
    expect(planOf({ status: "paused", steps: [buildStep()], rollouts })).toEqual({ actions: [], wakeAt: null });
  });
});

describe("stopping", () => {
  const rollouts = [
    active(),
    buildRollout({ rolloutId: "b" }),
    buildRollout({ rolloutId: "c", state: "queued" }),
    scored({ rolloutId: "d" }),
  ];

  test("settles everything as cancelled and closes the steps, then stops", () => {
    const { actions, wakeAt } = planOf({ status: "stopping", steps: [buildStep()], rollouts });
    expect(actions.map((action) => [action.do, "rolloutId" in action ? action.rolloutId : null])).toEqual([
      ["settle", "rollout-1"],
      ["settle", "b"],
      ["settle", "c"],
      ["end-step", null],
    ]);
    expect(actions[0]).toMatchObject({ outcome: "cancelled", ending: "cancelled", reason: "the run was stopped" });
    expect(actions[3]).toMatchObject({ from: "gathering", to: "cancelled" });
    expect(wakeAt).toBe(now);
    expect(planOf({ status: "stopping" })).toEqual({
      actions: [{ do: "move-run", from: "stopping", to: "stopped", reason: null }],
      wakeAt: null,
    });
  });

  test("an update under way is given up", () => {
    const steps = [buildStep({ state: "updating", updateLeaseUntil: now + 9_000 })];
    expect(actionsOf({ status: "stopping", steps })).toMatchObject([
      { do: "end-step", from: "updating", to: "cancelled" },
    ]);
  });

  test.each(["stopped", "completed", "failed"] as const)(
    "a %s run closes what a race left open, then rests",
    (status) => {
      expect(actionsOf({ status, steps: [buildStep()], rollouts })).toHaveLength(4);
      expect(planOf({ status })).toEqual({ actions: [], wakeAt: null });
    },
  );
});

describe("the end", () => {
  test("all steps done", () => {
    expect(actionsOf({ servingVersion: 3 })).toEqual([
      { do: "move-run", from: "running", to: "completed", reason: "all 3 steps are done" },
    ]);
  });

  test("all steps over, but none of them had anything to train", () => {
    const config = buildConfig({ budget: { steps: 1 } });
    expect(actionsOf({ config, servingVersion: 0, steps: [buildStep({ state: "failed" })] })).toMatchObject([
      { do: "move-run", to: "failed", reason: "no step had a scored rollout to train" },
    ]);
  });

  test.each([
    ["hours", { hours: 0.02 }, {}, "the budget of 0.02 hours was reached after 1 steps"],
    ["tokens", { tokens: 50 }, { sampledTokens: 51 }, "the budget of 50 sampled tokens was reached after 1 steps"],
    [
      "cost",
      { cost: 2.5 },
      { cost: { total: 2.51, step: 1 } },
      "the cost budget of 2.5 was reached (2.51 by the end of step 1) after 1 steps",
    ],
  ])("a budget of %s gives up the step under way", (_, budget, over, reason) => {
    const snapshot = { config: buildConfig({ budget }), servingVersion: 1, ...over };
    expect(actionsOf({ ...snapshot, steps: [buildStep({ step: 2 })], rollouts: [active()] })).toEqual([
      { do: "settle", rolloutId: "rollout-1", attempt: 1, outcome: "cancelled", ending: "cancelled", reason },
      { do: "end-step", stepId: "step-1", from: "gathering", to: "cancelled", reason },
      { do: "move-run", from: "running", to: "completed", reason },
    ]);
    const updating = buildStep({ step: 2, state: "updating", updateLeaseUntil: now + 5 });
    expect(actionsOf({ ...snapshot, steps: [updating] })).toEqual([]);
  });

  test("a cost below its budget, and one that is not known, end nothing", () => {
    const config = buildConfig({ budget: { steps: 3, cost: 2.5 } });
    for (const cost of [null, { total: 2.49, step: 1 }])
      expect(actionsOf({ config, cost, servingVersion: 1, steps: [], rollouts: [] })[0]?.do).toBe("create-step");
    // What it cost is a fact also of a run that sets no limit.
    const free = { config: buildConfig({ budget: { steps: 3 } }), cost: { total: 9e9, step: 1 } };
    expect(actionsOf({ ...free, servingVersion: 1, steps: [], rollouts: [] })[0]?.do).toBe("create-step");
  });

  test("no timer lies further ahead than a day, whatever a config says", () => {
    const steps = [buildStep()];
    const rollouts = [buildRollout({ held: true })];
    const daysAhead = (hours: number): number | null => {
      const config = buildConfig({ budget: { steps: 3, hours } });
      const { wakeAt } = planOf({ config, startedAt: now - 1, steps, rollouts });
      return wakeAt === null ? null : (wakeAt - now) / 86_400_000;
    };
    // What is beyond all numbers in milliseconds is no limit.
    expect([12, 1e12, Number.MAX_VALUE].map(daysAhead)).toEqual([0.5 - 1 / 86_400_000, 1, null]);
  });

  test("the budget of hours is a timer", () => {
    const config = buildConfig({ budget: { steps: 3, hours: 0.1 } });
    const rollouts = [active({ leaseUntil: now + 900_000 })];
    expect(planOf({ config, startedAt: now - 1, steps: [buildStep()], rollouts }).wakeAt).toBe(now - 1 + 360_000);
  });

  test("an update that fails too often fails the run", () => {
    const steps = (updateFailures: number) => [buildStep({ state: "updating", updateFailures })];
    expect(actionsOf({ steps: steps(5) })).toEqual([{ do: "redeliver-update", stepId: "step-1" }]);
    expect(actionsOf({ steps: steps(6) })).toMatchObject([
      { do: "end-step", to: "cancelled" },
      { do: "move-run", to: "failed", reason: "the update of step 1 failed 6 times" },
    ]);
    const known = [buildStep({ state: "updating", updateFailures: 6, updateReason: "no memory" })];
    expect(actionsOf({ steps: known }).at(-1)).toMatchObject({
      reason: "the update of step 1 failed 6 times, at last because: no memory",
    });
  });

  test("task sets without training instances fail it", () => {
    expect(actionsOf({ taskSizes: [{ train: 0, evaluate: 5 }] })).toMatchObject([
      { do: "move-run", to: "failed", reason: "the task sets have no training instances" },
    ]);
  });
});

describe("wakeAt", () => {
  const waiting = (notBefore: number) => buildRollout({ rolloutId: `w${notBefore}`, notBefore });
  const at = (rollouts: ReturnType<typeof buildRollout>[], over: Partial<RunSnapshot> = {}) =>
    planOf({ steps: [buildStep()], rollouts, ...over }).wakeAt;

  test("is the earliest of back-off, lease and deadline still to come", () => {
    expect(at([waiting(now + 70), waiting(now + 50)])).toBe(now + 50);
    expect(at([active({ leaseUntil: now + 40 }), waiting(now + 50)])).toBe(now + 40);
    const config = buildConfig({ dispatcher: { stageTimeoutMs: { run: 1_000 } } });
    expect(at([active({ stageStartedAt: now - 15_995 })], { config })).toBe(now + 5);
  });

  test("is a lease after a job was sent, and at once when an action calls for a next plan", () => {
    expect(at([buildRollout()])).toBe(now + leaseMs);
    expect(planOf({}).actions).toMatchObject([{ do: "create-step" }]);
    expect(planOf({}).wakeAt).toBe(now);
  });

  test("is the end of a failed rollout's back-off", () => {
    const { actions, wakeAt } = planOf({
      steps: [buildStep()],
      rollouts: [buildRollout({ stage: "run", ending: "sandbox_lost", infrastructureFailures: 1 })],
    });
    expect(actions).toMatchObject([{ do: "retry", notBefore: wakeAt }]);
  });
});
