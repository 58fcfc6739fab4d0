/** What each policy lets in, through the planner's admissions. */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { Action, Resource, ResourceCounts, RolloutSnapshot } from "@rolldeck/contracts/plan";
import { describe, expect, test } from "vitest";
import { buildConfig, buildRollout, buildSnapshot, buildStep, counts } from "../../testing/build-snapshot.ts";
import { plan } from "../plan.ts";
import type { DispatcherName } from "../registry.ts";

const bounds = { init: 2, run: 4, evaluate: 2 };

type Place = { stage: Stage; state: "waiting" | "queued" | "active"; holds?: Resource[] };
const rollouts = (...places: [number, Place][]): RolloutSnapshot[] =>
  places
    .flatMap(([count, place]) => Array.from({ length: count }, () => place))
    .map((place, at) =>
      buildRollout({ ...place, rolloutId: `rollout-${at}`, leaseUntil: place.state === "waiting" ? null : 2_000_000 }),
    );

function admitted(
  name: DispatcherName,
  waiting: RolloutSnapshot[],
  { grants = counts(100), sandbox = "none" as "none" | "image", inPlace = false } = {},
) {
  const held: Record<Resource, number> = { ...counts(0) };
  for (const { holds } of waiting) for (const resource of holds) held[resource] += 1;
  const config = buildConfig({ dispatcher: { name, bounds } });
  const tasks = { taskSandboxes: [sandbox], gradedInPlace: [inPlace] };
  const snapshot = buildSnapshot({ config, steps: [buildStep()], rollouts: waiting, held, ...tasks });
  return plan(snapshot, grants).actions.filter(
    (action): action is Extract<Action, { do: "admit" }> => action.do === "admit",
  );
}
const stagesOf = (actions: readonly { stage: Stage }[]) => actions.map(({ stage }) => stage);
const pool = (over: Partial<ResourceCounts>): ResourceCounts => ({ ...counts(100), ...over });

describe("batch", () => {
  test("starts all, and each next stage at once", () => {
    const actions = admitted(
      "batch",
      rollouts([9, { stage: "init", state: "waiting" }], [9, { stage: "run", state: "waiting" }]),
    );
    expect(actions).toHaveLength(18);
  });

  test("is bounded by the pools alone", () => {
    const line = rollouts([9, { stage: "init", state: "waiting" }]);
    expect(admitted("batch", line, { grants: pool({ initSlot: 5 }) })).toHaveLength(5);
  });
});

describe("bounded", () => {
  test("has at most bounds.run rollouts between init and the end", () => {
    const line = rollouts(
      [2, { stage: "run", state: "active", holds: ["runSlot"] }],
      [1, { stage: "evaluate", state: "active", holds: ["runSlot", "gradeSlot"] }],
      [9, { stage: "init", state: "waiting" }],
    );
    expect(stagesOf(admitted("bounded", line))).toEqual(["init"]);
  });

  test("takes run slot and sandbox at init and nothing but a grading slot later", () => {
    const [first] = admitted("bounded", rollouts([1, { stage: "init", state: "waiting" }]), { sandbox: "image" });
    expect(first?.leases).toEqual([
      { resource: "initSlot", until: "init" },
      { resource: "runSlot", until: "evaluate" },
      { resource: "sandbox", until: "evaluate" },
    ]);
    const holds: Resource[] = ["runSlot", "sandbox"];
    const later = rollouts(
      [1, { stage: "run", state: "waiting", holds }],
      [1, { stage: "evaluate", state: "waiting", holds }],
    );
    expect(admitted("bounded", later, { sandbox: "image" }).map(({ stage, leases }) => [stage, leases])).toEqual([
      ["evaluate", [{ resource: "gradeSlot", until: "evaluate" }]],
      ["run", []],
    ]);
  });

  test("takes the sandbox again that a failed grading gave back", () => {
    const line = rollouts([1, { stage: "evaluate", state: "waiting" }]);
    const [again] = admitted("bounded", line, { sandbox: "image" });
    expect(again?.leases.map(({ resource }) => resource)).toEqual(["gradeSlot", "sandbox"]);
  });
});

describe("pipeline", () => {
  test("bounds each stage by itself", () => {
    const line = rollouts(
      [9, { stage: "init", state: "waiting" }],
      [1, { stage: "run", state: "waiting" }],
      [2, { stage: "run", state: "active", holds: ["runSlot"] }],
      [9, { stage: "evaluate", state: "waiting" }],
    );
    expect(stagesOf(admitted("pipeline", line))).toEqual(["evaluate", "evaluate", "run", "init", "init"]);
  });

  test("init stops when what it prepared is not taken", () => {
    const line = rollouts(
      [9, { stage: "init", state: "waiting" }],
      [2, { stage: "run", state: "waiting" }],
      [4, { stage: "run", state: "active", holds: ["runSlot"] }],
    );
    expect(admitted("pipeline", line)).toEqual([]);
  });

  test("prepared rollouts keep their sandboxes beside those that run: pool and reserve alone bound them", () => {
    const line = rollouts(
      [9, { stage: "init", state: "waiting" }],
      [4, { stage: "run", state: "active", holds: ["runSlot", "sandbox"] }],
    );
    expect(stagesOf(admitted("pipeline", line, { sandbox: "image" }))).toEqual(["init", "init"]);
    // A quarter of the bounds is evaluate's: of seven sandboxes one is left to it, of six one as well.
    expect(stagesOf(admitted("pipeline", line, { sandbox: "image", grants: pool({ sandbox: 7 }) }))).toHaveLength(2);
    expect(stagesOf(admitted("pipeline", line, { sandbox: "image", grants: pool({ sandbox: 6 }) }))).toHaveLength(1);
    expect(stagesOf(admitted("pipeline", line, { sandbox: "none" }))).toEqual(["init", "init"]);
  });

  test("a sandbox that is graded in place is held through grading, which takes no other", () => {
    const starting = rollouts([2, { stage: "init", state: "waiting" }]);
    const image = { sandbox: "image", inPlace: true, grants: pool({ sandbox: 2 }) } as const;
    expect(admitted("pipeline", starting, image).map(({ leases }) => leases)).toEqual(
      starting.map(() => [
        { resource: "initSlot", until: "init" },
        { resource: "sandbox", until: "evaluate" },
      ]),
    );
    const grading = rollouts([2, { stage: "evaluate", state: "waiting", holds: ["sandbox"] }]);
    expect(admitted("pipeline", grading, image).map(({ leases }) => leases)).toEqual(
      grading.map(() => [{ resource: "gradeSlot", until: "evaluate" }]),
    );
  });

  test("keeps one sandbox of the grant for grading as soon as there are two", () => {
    const starting = rollouts([4, { stage: "init", state: "waiting" }]);
    expect(admitted("pipeline", starting, { sandbox: "image", grants: pool({ sandbox: 2 }) })).toHaveLength(1);
    expect(admitted("pipeline", starting, { sandbox: "image", grants: pool({ sandbox: 1 }) })).toHaveLength(1);
    const grading = rollouts(
      [1, { stage: "init", state: "waiting" }],
      [1, { stage: "run", state: "active", holds: ["runSlot", "sandbox"] }],
      [1, { stage: "evaluate", state: "waiting" }],
    );
    expect(stagesOf(admitted("pipeline", grading, { sandbox: "image", grants: pool({ sandbox: 2 }) }))).toEqual([
      "evaluate",
    ]);
  });
});
