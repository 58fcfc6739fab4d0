/** Whom the policies with an order of their own let in first, and what fixed-pool keeps. */
import type { GroupSnapshot, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  buildConfig,
  buildGroup,
  buildRollout,
  buildSnapshot,
  buildStep,
  counts,
} from "../../testing/build-snapshot.ts";
import { plan } from "../plan.ts";

const now = 1_000_000;
const times = (run: number, evaluate = 0) => ({ init: 1_000, run, evaluate });
const group = (groupId: string, expectedMs: GroupSnapshot["expectedMs"] = null) => buildGroup({ groupId, expectedMs });
const waits = (groupId: string, over: Partial<RolloutSnapshot> = {}) =>
  buildRollout({ groupId, rolloutId: `${groupId}-${over.sample ?? 0}`, ...over });

/** Ids of those let into their stage, one slot at a time: the order of the line. */
function lineOf(name: string, rollouts: readonly RolloutSnapshot[], over: Partial<RunSnapshot> = {}): string[] {
  const config = buildConfig({ dispatcher: { name, bounds: { init: 64, run: 64, evaluate: 64 } } });
  const snapshot = buildSnapshot({ config, steps: [buildStep()], rollouts, ...over });
  return plan(snapshot, counts(100)).actions.flatMap((action) => (action.do === "admit" ? [action.rolloutId] : []));
}

describe("priority", () => {
  test("takes the longest expected first, by run and evaluate together", () => {
    const groups = [group("a", times(5_000, 100)), group("b", times(2_000, 9_000)), group("c", times(4_000))];
    expect(
      lineOf(
        "priority",
        groups.map(({ groupId }) => waits(groupId)),
        { groups },
      ),
    ).toEqual(["b-0", "a-0", "c-0"]);
  });

  test("in the line for grading only grading counts", () => {
    const groups = [group("a", times(5_000, 100)), group("b", times(100, 200))];
    const rollouts = groups.map(({ groupId }) => waits(groupId, { stage: "evaluate", ending: "answer" }));
    expect(lineOf("priority", rollouts, { groups })).toEqual(["b-0", "a-0"]);
  });

  test("an instance never seen stands at the geometric mean of those that were", () => {
    const groups = [
      group("short", times(1_000)),
      group("new"),
      group("long", times(9_000)),
      group("mid", times(2_900)),
    ];
    expect(
      lineOf(
        "priority",
        groups.map(({ groupId }) => waits(groupId)),
        { groups },
      ),
    ).toEqual(["long-0", "new-0", "mid-0", "short-0"]);
  });

  test("with nothing known, siblings come apart", () => {
    const rollouts = ["a", "b"].flatMap((id) => [0, 1].map((sample) => waits(id, { sample })));
    expect(lineOf("priority", rollouts)).toEqual(["a-0", "b-0", "a-1", "b-1"]);
  });

  test("no stage is expected to take longer than it may", () => {
    const dispatcher = { name: "priority", stageTimeoutMs: { run: 2_000 } };
    const config = buildConfig({ dispatcher });
    const groups = [group("a", times(1_900, 200)), group("b", times(90_000, 50))];
    const rollouts = groups.map(({ groupId }) => waits(groupId));
    expect(lineOf("priority", rollouts, { config, groups })).toEqual(["a-0", "b-0"]);
  });

  test("what can't be done before the run's hours are over comes last", () => {
    const config = buildConfig({ dispatcher: { name: "priority" }, budget: { steps: 3, hours: 0.01 } });
    const groups = [group("late", times(60_000)), group("early", times(1_000))];
    const rollouts = groups.map(({ groupId }) => waits(groupId));
    expect(lineOf("priority", rollouts, { config, groups, startedAt: now - 10_000 })).toEqual(["early-0", "late-0"]);
  });

  test("nobody starves: one is overtaken only by what came less than the longest time after it", () => {
    const some = fc.array(fc.record({ run: fc.nat(50_000), age: fc.nat(200_000) }), { minLength: 2, maxLength: 20 });
    fc.assert(
      fc.property(some, (line) => {
        const groups = line.map(({ run }, at) => group(`g${at}`, times(run)));
        const rollouts = line.map(({ age }, at) => waits(`g${at}`, { readyAt: now - age }));
        const order = lineOf("priority", rollouts, { groups });
        const longest = Math.max(...line.map(({ run }) => run));
        const ageOf = (id: string): number => line[Number(id.slice(1, -2))]?.age ?? 0;
        for (const [at, id] of order.entries()) {
          for (const before of order.slice(0, at)) expect(ageOf(id) - ageOf(before)).toBeLessThanOrEqual(longest);
        }
      }),
    );
  });
});

describe("async", () => {
  test("brings on the groups with the oldest version first, then those that wait longest", () => {
    const begun = (id: string, firstVersion: number) =>
      buildRollout({
        groupId: id,
        rolloutId: `${id}-x`,
        stage: "run",
        state: "active",
        leaseUntil: now + 9,
        firstVersion,
      });
    const rollouts = [
      begun("new", 1),
      begun("old", 0),
      waits("none", { readyAt: now - 90_000 }),
      waits("new", { readyAt: now - 9 }),
      waits("old"),
    ];
    expect(lineOf("async", rollouts, { servingVersion: 1 })).toEqual(["old-0", "new-0", "none-0"]);
  });

  test("an evaluation comes before all training, so that its checkpoint is measured in time", () => {
    const steps = [buildStep(), buildStep({ stepId: "e", purpose: "evaluate", step: 0, createdAt: now })];
    const rollouts = [waits("a", { readyAt: 0 }), waits("e", { stepId: "e" })];
    expect(lineOf("async", rollouts, { steps })).toEqual(["e-0", "a-0"]);
  });
});

describe("fixed-pool", () => {
  const bounds = { init: 9, run: 3, evaluate: 1 };
  const config = buildConfig({ dispatcher: { name: "fixed-pool", bounds } });
  const busy = (stage: RolloutSnapshot["stage"], nth: number, holds: RolloutSnapshot["holds"] = ["sandbox"]) =>
    waits(`${stage}${nth}`, { stage, state: "active", leaseUntil: now + 9, holds });
  const line = Array.from({ length: 9 }, (_, sample) => waits("line", { sample }));
  const started = (rollouts: RolloutSnapshot[], gradedInPlace = false) =>
    lineOf("fixed-pool", [...rollouts, ...line], { config, taskSandboxes: ["image"], gradedInPlace: [gradedInPlace] })
      .length;

  test("no more rollouts than environments work in one, those that wait in theirs included", () => {
    expect(started([])).toBe(3);
    expect(started([busy("init", 1), waits("run1", { stage: "run", notBefore: now + 9, holds: ["sandbox"] })])).toBe(1);
    expect(started([busy("run", 1), busy("run", 2), busy("run", 3)])).toBe(0);
  });

  test("grading elsewhere leaves its environment to the next, grading in place keeps it", () => {
    expect(started([busy("evaluate", 1)])).toBe(3);
    expect(started([busy("evaluate", 1)], true)).toBe(2);
  });
});
