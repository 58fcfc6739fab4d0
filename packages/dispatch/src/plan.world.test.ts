/** The planner in a little world of workers, pools and accidents; the world checks every plan, these tests the whole story. */
import { strict as assert } from "node:assert";
import type { Action } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkEnd } from "../testing/check-end.ts";
import { someChaos, someWorld } from "../testing/some-world.ts";
import { calm } from "../testing/workers.ts";
import { World, type WorldSetup } from "../testing/world.ts";
import type { RunRow } from "../testing/world-rows.ts";
import { askAll, oneRun, playedToEnd, someAsked } from "../testing/world-stories.ts";

/** These take seconds alone, more on a busy machine. */
const timeoutMs = 240_000;

test(
  "in a calm world every run does all of its steps, and every rollout ends at its first attempt",
  () => {
    fc.assert(
      fc.property(someWorld(fc.constant(calm)), (setup) => {
        const world = playedToEnd(setup);
        for (const run of world.runs) {
          const { kind, budget, evaluation } = run.config;
          const nothing = kind === "evaluate" && evaluation.samples === 0;
          assert.equal(run.status, nothing ? "failed" : "completed", run.endReason ?? "");
          // Groups that start ahead may grow too old even here: how long they take is not the planner's to say.
          const mayBeCut = run.config.dispatcher.name === "async";
          for (const { attempt, outcome, ending } of run.rollouts) {
            assert.equal(attempt, 1);
            assert.ok(outcome === "completed" || (mayBeCut && ending === "stale"), `${outcome} ${ending}`);
          }
          const trained = run.steps.filter((step) => step.trained).map(({ step }) => step);
          assert.deepEqual(trained, kind === "train" ? Array.from({ length: budget.steps }, (_, at) => at + 1) : []);
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
      fc.property(someWorld(someChaos), (setup) => void playedToEnd(setup)),
      { numRuns: 80 },
    );
  },
  timeoutMs,
);

type Wish = "pause" | "resume" | "lose-backend";
const someWishes = someAsked<Wish>(["pause", "resume", "lose-backend"], 12);

function ask(world: World, run: RunRow, what: Wish): void {
  if (what === "lose-backend") world.loseBackend(run, world.clock.between(1_000, 40_000));
  else if (what === "pause") world.ask(run, "pausing");
  else if (run.status === "pausing") world.ask(run, "running");
  else if (run.status === "paused") world.ask(run, "queued");
}

test(
  "pauses and lost backends at any moment change nothing about the end",
  () => {
    fc.assert(
      fc.property(someWorld(someChaos), someWishes, (setup, wishes) => {
        const world = new World({ ...setup, chaosMs: Math.min(setup.chaosMs, 200_000) });
        askAll(world, wishes, (run, what) => ask(world, run, what));
        world.runFor(600_000);
        assert.ok(
          world.runs.every(({ status }) => status !== "pausing"),
          "pausing comes to an end",
        );
        for (const run of world.runs) world.ask(run, "queued");
        world.runToEnd();
        checkEnd(world);
      }),
      { numRuns: 40 },
    );
  },
  timeoutMs,
);

test(
  "stop reaches `stopped` at once from every state",
  () => {
    fc.assert(
      fc.property(someWorld(someChaos), someWishes, fc.nat({ max: 120_000 }), (setup, wishes, stopMs) => {
        const world = new World(setup);
        askAll(world, wishes.slice(0, 3), (run, what) => ask(world, run, what));
        world.runFor(stopMs);
        const asked = world.runs.filter((run) => world.ask(run, run.status === "queued" ? "stopped" : "stopping"));
        const at = world.clock.now;
        world.reconcileDue();
        assert.equal(world.clock.now, at);
        assert.ok(asked.every(({ status }) => status === "stopped"));
        checkEnd(world);
        // Workers that still act come too late.
        world.runFor(600_000);
        assert.ok(asked.every(({ status }) => status === "stopped"));
        checkEnd(world);
      }),
      { numRuns: 40 },
    );
  },
  timeoutMs,
);

describe("one full run", () => {
  const setup = (over: Partial<WorldSetup> = {}): WorldSetup =>
    oneRun(
      {
        algorithm: { groupsPerStep: 8, groupSize: 4 },
        dispatcher: { bounds: { init: 8, run: 32, evaluate: 8 }, stageTimeoutMs: { run: 120_000 } },
        evaluation: { samples: 10, every: 2 },
        budget: { steps: 4 },
      },
      over,
    );

  test("takes its steps and evaluations in order", () => {
    const world = new World(setup());
    world.runToEnd();
    expect(world.runs[0]?.steps.map(({ purpose, step }) => `${purpose} ${step}`)).toEqual([
      "evaluate 0",
      "train 1",
      "train 2",
      "evaluate 2",
      "train 3",
      "train 4",
      "evaluate 4",
    ]);
    expect(world.runs[0]?.endReason).toBe("all 4 steps are done");
  });

  test("survives accidents of every kind: none of the planner's actions stays unused", () => {
    const chaos = { lostJob: 0.1, lostWorker: 0.1, hang: 0.02, failure: 0.1, handBack: 0.05 };
    const worlds = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => new World(setup({ chaos, seed })));
    for (const world of worlds) world.runToEnd();
    const total = (action: Action["do"]) => worlds.reduce((sum, { taken }) => sum + (taken.get(action) ?? 0), 0);
    for (const action of ["retry", "regrade", "redeliver", "redeliver-update", "begin-update", "prepare"] as const) {
      expect(total(action), action).toBeGreaterThan(0);
    }
    expect(worlds.map(({ runs }) => runs[0]?.status)).toEqual(worlds.map(() => "completed"));
    expect(Math.min(...worlds.map(({ workers }) => workers.lateWrites))).toBeGreaterThan(0);
  });

  test("fails with its reason when nothing can be scored any more", () => {
    const world = new World(setup({ chaos: { ...calm, failure: 1 } }));
    const [run] = world.runs;
    if (run) Object.assign(run, { modelBootId: "boot-0", servingVersion: 0 });
    world.runToEnd();
    expect(run?.status).toBe("failed");
    expect(run?.endReason).toBe("3 steps in a row had no scored rollout to train");
    expect(run?.notes[0]).toMatch(/^Version 0 was not measured: no rollout of the evaluation was scored: /);
  });
});
