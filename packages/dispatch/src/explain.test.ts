import type { RunSnapshot } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildConfig, buildGroup, buildRollout, buildSnapshot, buildStep, counts } from "../testing/build-snapshot.ts";
import { someGrants, someSnapshot } from "../testing/some-snapshot.ts";
import { explain, explainStages } from "./explain.ts";
import { plan } from "./plan.ts";

const now = 1_000_000;
const why = (over: Partial<RunSnapshot>, grants = counts(100)) =>
  [...explain(buildSnapshot({ steps: [buildStep()], rollouts: [buildRollout()], ...over }), grants).values()][0];

describe("a rollout waits", () => {
  test.each([
    ["run", { status: "paused" as const }, 100],
    ["step", { steps: [buildStep({ state: "updating", purpose: "evaluate", updateLeaseUntil: now + 1 })] }, 100],
    ["held", { rollouts: [buildRollout({ held: true })] }, 100],
    ["held", { groups: [buildGroup({ held: true })] }, 100],
    ["draining", { draining: true }, 100],
    ["back-off", { rollouts: [buildRollout({ notBefore: now + 9 })] }, 100],
    ["model", { backendBootId: null }, 100],
    ["grant", {}, 0],
  ])("for %s", (waitsFor, over, granted) => {
    expect(why(over, counts(granted))).toMatchObject({ waitsFor, detail: expect.stringMatching(/.{8}/) });
  });

  test("for its bound, its slot, its sandbox or the start rate", () => {
    const dispatcher = { bounds: { init: 2, run: 2, evaluate: 1 }, startsPerSecond: 1 };
    const config = buildConfig({ dispatcher });
    const busy = (stage: "init" | "run" | "evaluate", nth: number) =>
      buildRollout({
        rolloutId: `busy-${stage}-${nth}`,
        groupId: `g-${nth}`,
        stage,
        state: "active",
        leaseUntil: now + 5,
      });
    const line = (stage: "init" | "run") => buildRollout({ rolloutId: "line", stage });
    const of = (rollouts: RunSnapshot["rollouts"], over: Partial<RunSnapshot> = {}, grants = counts(100)) =>
      explain(buildSnapshot({ config, steps: [buildStep()], rollouts, ...over }), grants).get("line");
    expect(of([busy("run", 1), busy("run", 2), line("run")])).toEqual({
      waitsFor: "bound",
      detail: "2 rollouts are in run, its bound",
    });
    expect(of([line("run")], { held: { ...counts(0), runSlot: 3 } }, counts(3))).toMatchObject({
      waitsFor: "run-slot",
    });
    const sandbox = { taskSandboxes: ["image" as const], held: { ...counts(0), sandbox: 3 } };
    expect(of([line("init")], sandbox, counts(3))).toMatchObject({ waitsFor: "sandbox" });
    expect(of([line("init")], { recentStarts: [now - 400] })).toEqual({
      waitsFor: "start-rate",
      detail: "1 rollouts may start per second",
      until: now + 600,
    });
  });

  test("counted by stage", () => {
    const rollouts = Array.from({ length: 5 }, (_, at) => buildRollout({ rolloutId: `r${at}`, held: at === 0 }));
    const snapshot = buildSnapshot({
      steps: [buildStep()],
      rollouts,
      config: buildConfig({ dispatcher: { bounds: { init: 1 } } }),
    });
    expect(explainStages(snapshot, counts(9)).init).toMatchObject([
      { waitsFor: "bound", rollouts: 3 },
      { waitsFor: "held", rollouts: 1, detail: "it is held" },
    ]);
  });
});

test("exactly the rollouts that wait and are not moved have a reason", () => {
  fc.assert(
    fc.property(someSnapshot, someGrants, (snapshot, grants) => {
      const { actions } = plan(snapshot, grants);
      const moved = new Set(actions.flatMap((action) => ("rolloutId" in action ? [action.rolloutId] : [])));
      const aside = new Set(actions.flatMap((action) => (action.do === "set-aside" ? [action.groupId] : [])));
      const left = snapshot.rollouts.filter(
        ({ state, rolloutId, groupId }) => state === "waiting" && !moved.has(rolloutId) && !aside.has(groupId),
      );
      expect(new Set(explain(snapshot, grants).keys())).toEqual(new Set(left.map(({ rolloutId }) => rolloutId)));
    }),
    { numRuns: 500 },
  );
});
