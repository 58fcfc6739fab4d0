import { describe, expect, test } from "vitest";
import { buildConfig, counts } from "../../testing/build-snapshot.ts";
import { overlapEstimate } from "./overlap-estimate.ts";
import type { RunScenario } from "./run-scenario.ts";

const run = (over: Partial<RunScenario> = {}): RunScenario => ({
  config: buildConfig({
    dispatcher: { name: "async", maxStaleness: 1, bounds: { init: 16, run: 16, evaluate: 16 } },
    algorithm: { groupsPerStep: 8, groupSize: 4 },
  }),
  pools: counts(64),
  taskSandboxes: ["none"],
  recorded: null,
  assumed: { ms: { init: 1_000, run: 60_000, evaluate: 1_000 }, deviation: 0.5 },
  trainer: { msPerStep: 100_000 },
  ...over,
});

describe("async against pipeline", () => {
  test("gains much of the update where it has devices of its own", () => {
    const { change, asyncMs, pipelineMs, basis } = overlapEstimate(run(), 3);
    expect(change.high).toBeLessThan(-0.3);
    expect(asyncMs).toBeLessThan(pipelineMs);
    expect(basis).toBe("assumed");
  });
  test("gains less where updates take the sampler's device, and never the update itself", () => {
    const apart = overlapEstimate(run(), 3);
    const shared = overlapEstimate(run({ colocated: true }), 3);
    expect(shared.pipelineMs).toBeCloseTo(apart.pipelineMs, 6);
    expect(shared.asyncMs).toBeGreaterThan(apart.asyncMs);
    // Sampling 32 rollouts of a minute on 16 slots, and then an update of 100 s.
    expect(shared.asyncMs).toBeGreaterThan(200_000);
  });
});
