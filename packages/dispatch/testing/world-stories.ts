/** How stories in the little world begin and go on: runs played to a checked end, and people's wishes in between. */
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import fc from "fast-check";
import { buildConfig, counts } from "./build-snapshot.ts";
import { checkEnd } from "./check-end.ts";
import { calm } from "./workers.ts";
import { World, type WorldSetup } from "./world.ts";
import type { RunRow } from "./world-rows.ts";

export function playedToEnd(setup: WorldSetup): World {
  const world = new World(setup);
  world.runToEnd();
  checkEnd(world);
  return world;
}

/** One run in a calm world with room for it. */
export const oneRun = (config: Partial<RunConfigInput>, over: Partial<WorldSetup> = {}): WorldSetup => ({
  seed: 7,
  pools: counts(64),
  chaos: calm,
  chaosMs: 3_600_000,
  wishes: "exact",
  runs: [{ config: buildConfig(config), taskSizes: [{ train: 20, evaluate: 10 }], taskSandboxes: ["image"] }],
  ...over,
});

/** What a person asks for, after a while, of one of the runs. */
export interface Asked<What extends string> {
  readonly afterMs: number;
  readonly run: number;
  readonly what: What;
}

export const someAsked = <What extends string>(
  whats: readonly What[],
  maxLength: number,
): fc.Arbitrary<Asked<What>[]> =>
  fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 60_000 }),
      run: fc.nat({ max: 2 }),
      what: fc.constantFrom(...whats),
    }),
    { maxLength },
  );

/** One after the other, each when its time has come. */
export function askAll<What extends string>(
  world: World,
  wishes: readonly Asked<What>[],
  ask: (run: RunRow, what: What) => void,
): void {
  for (const { afterMs, run: at, what } of wishes) {
    world.runFor(afterMs);
    const run = world.runs[at % world.runs.length];
    if (run) ask(run, what);
  }
}
