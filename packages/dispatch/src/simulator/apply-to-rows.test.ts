/** Actions on the rows: what each leaves behind, and that what the rows no longer allow changes nothing. */
import type { Action, NewGroup } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { ApplyToRows } from "./apply-to-rows.ts";
import { EventQueue } from "./event-queue.ts";
import { RunRows } from "./run-rows.ts";
import { Tally } from "./tally.ts";

const instance = (instanceIndex: number): NewGroup => ({ taskSet: 0, split: "train", instanceIndex });

function scene(groups = 3, groupSize = 2) {
  const queue = new EventQueue(0);
  const rows = new RunRows(
    {
      config: buildConfig({ budget: { steps: 5 } }),
      pools: counts(4),
      work: () => ({ initMs: 1, runMs: 1, evaluateMs: 1 }),
      taskSizes: [{ train: null, evaluate: null }],
      taskSandboxes: ["image"],
    },
    new Tally(),
  );
  const delivered: string[] = [];
  const applier = new ApplyToRows(rows, queue, {
    stage: ({ rolloutId }) => delivered.push(rolloutId),
    update: ({ stepId }) => delivered.push(stepId),
  });
  const apply = (...actions: Action[]) => {
    for (const action of actions) applier.apply(action);
  };
  const drawn = Array.from({ length: groups }, (_, at) => instance(at));
  apply({ do: "create-step", purpose: "train", step: 1, source: "planned", batchId: null, groups: drawn, groupSize });
  /** All rollouts of a group are scored, sampled by a version. */
  const complete = (groupId: string, version: number) => {
    for (const row of rows.groups.get(groupId)?.rollouts ?? []) {
      row.firstVersion = version;
      row.reward = 1;
      rows.settle(row, "completed", "answer", queue.now);
    }
  };
  return { queue, rows, apply, delivered, complete };
}
const admit = (rolloutId: string): Action => ({
  do: "admit",
  rolloutId,
  attempt: 1,
  stage: "init",
  leases: [
    { resource: "initSlot", until: "init" },
    { resource: "sandbox", until: "run" },
  ],
});

describe("an update that leaves groups", () => {
  test("moves them with their rollouts to the next step in the same write", () => {
    const { rows, apply, delivered, complete } = scene();
    rows.servingVersion = 3;
    complete("group-0", 1);
    complete("group-2", 3);
    apply({ do: "begin-update", stepId: "train-1", leave: { step: 2, groupIds: ["group-1"] } });
    expect(rows.steps.map(({ step, state, batch }) => [step, state, batch.length])).toEqual([
      [1, "updating", 4],
      [2, "gathering", 0],
    ]);
    expect(rows.staleness).toEqual([1, undefined, 1]);
    expect(delivered).toEqual(["train-1"]);
    const { rollouts, groups } = rows.snapshot(0);
    expect(groups?.filter(({ stepId }) => stepId === "train-2").map(({ groupId }) => groupId)).toEqual(["group-1"]);
    expect(rollouts.filter(({ stepId }) => stepId === "train-2").map(({ groupId }) => groupId)).toEqual([
      "group-1",
      "group-1",
    ]);
  });

  test("makes the next step with nothing left over too, and begins once", () => {
    const { rows, apply, delivered } = scene();
    const begin: Action = { do: "begin-update", stepId: "train-1", leave: { step: 2, groupIds: [] } };
    apply(begin, begin);
    expect(rows.steps).toHaveLength(2);
    expect(delivered).toEqual(["train-1"]);
  });
});

describe("groups", () => {
  test("are added once by the number that was drawn, with whom they replace", () => {
    const { rows, apply } = scene(2);
    const add: Action = {
      do: "add-groups",
      stepId: "train-1",
      drawn: 2,
      groups: [{ ...instance(7), replaces: "group-0" }],
      groupSize: 3,
    };
    apply(add, add);
    const groups = rows.snapshot(0).groups ?? [];
    expect(groups.map(({ replaces, instance: { instanceIndex } }) => [instanceIndex, replaces])).toEqual([
      [0, null],
      [1, null],
      [7, "group-0"],
    ]);
    expect(rows.groupsDrawn).toBe(3);
    expect(rows.groups.get("group-2")?.rollouts).toHaveLength(3);
  });

  test("of an instance that was drawn before are another visit", () => {
    const { rows, apply } = scene(1);
    apply({
      do: "add-groups",
      stepId: "train-1",
      drawn: 1,
      groups: [{ ...instance(0), replaces: null }],
      groupSize: 1,
    });
    expect([...rows.groups.values()].map(({ visit }) => visit)).toEqual([0, 1]);
  });

  test("that are set aside are not trained, and what is unsettled of them is cancelled with its leases", () => {
    const { rows, apply, complete } = scene();
    complete("group-0", 0);
    apply(admit("group-1-0"));
    expect([rows.held.sandbox, rows.held.initSlot]).toEqual([1, 1]);
    const aside: Action = { do: "set-aside", groupId: "group-1", stepId: "train-1", as: "stale", reason: "too old" };
    apply(aside, aside);
    expect(rows.groups.get("group-1")?.rollouts.map(({ state, ending }) => [state, ending])).toEqual([
      ["settled", "stale"],
      ["settled", "stale"],
    ]);
    expect([rows.held.sandbox, rows.held.initSlot]).toEqual([0, 0]);
    apply({ do: "set-aside", groupId: "group-0", stepId: "train-1", as: "zero-variance", reason: "all alike" });
    apply({ do: "begin-update", stepId: "train-1" });
    expect(rows.stepNamed("train-1")?.batch).toEqual([]);
    expect(rows.tally.outcomes).toEqual({ completed: 2, failed: 0, cancelled: 2 });
  });
});

describe("an admission", () => {
  test("is refused where a pool is full, where the rollout has moved, and where the run has", () => {
    const { rows, apply, delivered } = scene(3, 2);
    for (const id of ["group-0-0", "group-0-1", "group-1-0", "group-1-1", "group-2-0"]) apply(admit(id));
    expect(delivered).toHaveLength(4);
    expect(rows.held.sandbox).toBe(4);
    apply(admit("group-0-0"));
    expect(delivered).toHaveLength(4);
    apply({ do: "settle", rolloutId: "group-0-0", attempt: 1, outcome: "cancelled", ending: "not_needed", reason: "" });
    apply({ do: "move-run", from: "running", to: "pausing", reason: null });
    apply(admit("group-2-0"));
    expect(delivered).toHaveLength(4);
    expect(rows.held.sandbox).toBe(3);
  });
});

test("a limit of running rollouts is kept with the time it was set", () => {
  const { rows, apply, queue } = scene();
  queue.after(500, () => apply({ do: "set-run-limit", from: null, to: 12, reason: "the cache is full" }));
  queue.step();
  expect(rows.snapshot(500).runLimit).toEqual({ limit: 12, since: 500 });
});
