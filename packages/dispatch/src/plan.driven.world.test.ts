/** Driven runs in the little world: an outside trainer asks for batches and takes them back. */
import { strict as assert } from "node:assert";
import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../testing/build-snapshot.ts";
import { checkEnd } from "../testing/check-end.ts";
import { type Chaos, calm } from "../testing/workers.ts";
import { World } from "../testing/world.ts";
import type { RunRow } from "../testing/world-rows.ts";

describe("a driven run", () => {
  const groups = [0, 1, 2].map((instanceIndex) => ({ taskSet: 0, split: "train" as const, instanceIndex }));
  const driven = (chaos: Chaos) =>
    new World({
      seed: 3,
      pools: counts(8),
      chaos,
      chaosMs: 600_000,
      wishes: "exact",
      runs: [
        {
          config: buildConfig({ stepSource: "driven", budget: { steps: 4 } }),
          taskSizes: [{ train: 9, evaluate: 9 }],
          taskSandboxes: ["image"],
        },
      ],
    });

  /** Asks for the next batch as soon as the last one is back, and goes silent after `batches`. */
  function train(world: World, run: RunRow, batches: number): void {
    const back = run.steps.filter(({ state }) => state === "done").length;
    if (back >= batches) return;
    run.trainerLeaseUntil = world.clock.now + 30_000;
    const asked = run.steps.length + run.batchRequests.length;
    if (asked === back) {
      const trainerStep = back + 1;
      run.batchRequests.push({ batchId: `batch-${trainerStep}`, trainerStep, groups, groupSize: 2, deadlineAt: null });
    }
    world.wake(run);
    world.clock.after(2_000, () => train(world, run, batches));
  }

  test("gathers every batch its trainer asks for, and completes after the last", () => {
    for (const chaos of [calm, { lostJob: 0.1, lostWorker: 0.1, hang: 0, failure: 0.2, handBack: 0.1 }]) {
      const world = driven(chaos);
      const [run] = world.runs;
      assert.ok(run);
      train(world, run, 4);
      world.runToEnd();
      expect(run.endReason).toBe("the trainer's 4 steps are done");
      expect(run.steps.map(({ step, state, trained }) => [step, state, trained])).toEqual(
        [1, 2, 3, 4].map((step) => [step, "done", false]),
      );
      checkEnd(world);
    }
  });

  test("pauses when its trainer falls silent, and goes on with it", () => {
    const world = driven(calm);
    const [run] = world.runs;
    assert.ok(run);
    train(world, run, 2);
    world.runFor(900_000);
    expect(run.status).toBe("paused");
    train(world, run, 4);
    world.ask(run, "queued");
    world.runToEnd();
    expect(run.status).toBe("completed");
    checkEnd(world);
  });
});
