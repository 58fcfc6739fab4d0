/**
 * Groups ahead of their update, cut, replaced, held and drained, in the little world: it checks after every plan what must
 * always hold (bounds, groups in open steps, start rate), and at the end that nothing stale, flat or in excess was trained.
 */
import { strict as assert } from "node:assert";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkEnd } from "../testing/check-end.ts";
import { someChaos, someFlow, someWorld } from "../testing/some-world.ts";
import { calm } from "../testing/workers.ts";
import { World, type WorldSetup } from "../testing/world.ts";
import type { RunRow } from "../testing/world-rows.ts";
import { askAll, oneRun, playedToEnd, someAsked } from "../testing/world-stories.ts";

/** These take seconds alone, more on a busy machine. */
const timeoutMs = 240_000;

test(
  "in a calm world every run comes to its end, whatever its flow",
  () => {
    fc.assert(
      fc.property(someWorld(fc.constant(calm), someFlow), (setup) => {
        const world = playedToEnd(setup);
        for (const { rollouts, config, steps, status } of world.runs) {
          assert.ok(rollouts.every(({ outcome }) => outcome !== "failed"));
          // Only equal rewards can keep a calm step from its update.
          if (config.kind === "evaluate" || config.dispatcher.zeroVariance?.mode !== "keep") continue;
          assert.equal(status, "completed");
          const trained = steps.filter((step) => step.trained).map(({ step }) => step);
          assert.deepEqual(
            trained,
            Array.from({ length: config.budget.steps }, (_, at) => at + 1),
          );
        }
      }),
      { numRuns: 40 },
    );
  },
  timeoutMs,
);

test(
  "whatever breaks, every run ends, every rollout settles once and every lease comes back",
  () => {
    fc.assert(
      fc.property(someWorld(someChaos, someFlow), (setup) => void playedToEnd(setup)),
      { numRuns: 60 },
    );
  },
  timeoutMs,
);

type Wish = "drain" | "hold" | "cancel-group" | "cancel-step";
const someWishes = someAsked<Wish>(["drain", "hold", "cancel-group", "cancel-step"], 8);

function ask(world: World, run: RunRow, what: Wish): void {
  if (what === "drain") run.draining = true;
  else if (what === "cancel-group") world.cancelGroup(run, world.clock.between(0, 20));
  else if (what === "cancel-step") world.cancelStep(run);
  else {
    const rollout = run.rollouts[world.clock.between(0, run.rollouts.length - 1)];
    const group = run.groups[world.clock.between(0, run.groups.length - 1)];
    if (rollout) rollout.held = true;
    if (group) group.held = true;
  }
  world.wake(run);
}

test(
  "draining comes to a pause that loses nothing, and what was held or cancelled changes nothing about the end",
  () => {
    fc.assert(
      fc.property(someWorld(someChaos, someFlow), someWishes, (setup, wishes) => {
        const world = new World({ ...setup, chaosMs: Math.min(setup.chaosMs, 200_000) });
        askAll(world, wishes, (run, what) => ask(world, run, what));
        world.runFor(3_600_000);
        for (const run of world.runs) {
          const drained = run.draining && run.startedAt !== null;
          if (drained)
            assert.ok(["paused", "completed", "failed"].includes(run.status), `a drained run is ${run.status}`);
          if (run.status === "paused") {
            assert.ok(run.rollouts.every(({ state }) => state === "waiting" || state === "settled"));
            assert.ok(run.rollouts.every(({ leases, held, stage }) => leases.length === 0 || held || stage !== "init"));
          }
          for (const rollout of run.rollouts) rollout.held = false;
          for (const group of run.groups) group.held = false;
          run.draining = false;
          if (run.status === "paused") world.ask(run, "running");
          world.wake(run);
        }
        world.runToEnd();
        checkEnd(world);
      }),
      { numRuns: 40 },
    );
  },
  timeoutMs,
);

const one = (dispatcher: RunConfigInput["dispatcher"], over: Partial<WorldSetup> = {}): WorldSetup =>
  oneRun(
    {
      algorithm: { groupsPerStep: 4, groupSize: 4 },
      dispatcher: { bounds: { init: 16, run: 16, evaluate: 16 }, ...dispatcher },
      budget: { steps: 8 },
    },
    over,
  );

const onlyRun = (world: World) => {
  const [run] = world.runs;
  assert.ok(run);
  return run;
};

describe("groups ahead of their update", () => {
  test.each([1, 2, 4])("staleness %i: every step is updated, some from older versions, none from too old ones", (S) => {
    const world = playedToEnd(one({ name: "async", maxStaleness: S }));
    const run = onlyRun(world);
    expect(run.endReason).toBe("all 8 steps are done");
    const ages = run.steps.map(({ staleness }) => staleness);
    expect(Math.max(...ages)).toBeGreaterThan(0);
    expect(Math.max(...ages)).toBeLessThanOrEqual(S);
    expect(run.groups.filter(({ setAside }) => setAside === null)).toHaveLength(8 * 4);
  });

  test("is faster than one step after the other, and staleness 0 is just that", () => {
    const makespan = (dispatcher: RunConfigInput["dispatcher"]) => {
      const world = new World(one({ ...dispatcher, bounds: { init: 48, run: 48, evaluate: 48 } }));
      world.runToEnd();
      return world.clock.now;
    };
    const synchronous = makespan({ name: "pipeline" });
    expect(makespan({ name: "async", maxStaleness: 0 })).toBe(synchronous);
    expect(makespan({ name: "async", maxStaleness: 2 })).toBeLessThan(0.8 * synchronous);
  });

  test("a group that grew too old is drawn again, the same instance in its place", () => {
    const hang = { ...calm, lostWorker: 0.3, failure: 0.2 };
    const runs = [1, 2, 3].map((seed) => {
      const world = playedToEnd(
        one({ name: "async", maxStaleness: 1, stageTimeoutMs: { run: 100_000 } }, { chaos: hang, seed }),
      );
      return onlyRun(world);
    });
    const stale = runs.flatMap(({ groups }) => groups.filter(({ setAside }) => setAside === "stale"));
    expect(stale.length).toBeGreaterThan(0);
    const again = runs.flatMap(({ groups }) =>
      groups.filter(({ replaces }) => stale.some((it) => it.groupId === replaces)),
    );
    expect(again.length).toBeGreaterThan(0);
  });
});

describe("more than a step needs", () => {
  test("each group trains the first that were scored, each step the first groups", () => {
    const world = playedToEnd(one({ name: "pipeline", overSample: { groups: 2, rollouts: 2 } }));
    const { groups, rollouts, endReason } = onlyRun(world);
    expect(endReason).toBe("all 8 steps are done");
    expect(groups).toHaveLength(8 * 6);
    expect(groups.filter(({ setAside }) => setAside === "not-needed")).toHaveLength(8 * 2);
    const cut = rollouts.filter(({ ending }) => ending === "not_needed");
    expect(cut.length).toBeGreaterThan(8 * 2 * 4);
    expect(cut.every(({ reward, outcome }) => reward === null && outcome === "cancelled")).toBe(true);
  });
});

describe("groups of equal rewards", () => {
  test("are left out", () => {
    const world = playedToEnd(one({ zeroVariance: { mode: "filter" } }));
    expect(onlyRun(world).groups.some(({ setAside }) => setAside === "zero-variance")).toBe(true);
  });

  test("are replaced, at most so often in a step", () => {
    const world = playedToEnd(one({ zeroVariance: { mode: "replace", maxReplaced: 2 } }));
    const { groups, steps } = onlyRun(world);
    expect(groups.some(({ replaces }) => replaces !== null)).toBe(true);
    for (const { stepId } of steps) {
      expect(groups.filter((group) => group.stepId === stepId && group.replaces !== null).length).toBeLessThanOrEqual(
        2,
      );
    }
  });
});
