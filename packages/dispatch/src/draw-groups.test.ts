import fc from "fast-check";
import { expect, test } from "vitest";
import { buildConfig } from "../testing/build-snapshot.ts";
import { drawGroups } from "./draw-groups.ts";
import { pickInstances } from "./pick-instances.ts";

const of = (groupsPerStep: number, size: number | null) => ({
  config: buildConfig({
    taskSets: [{ name: "a" }, { name: "b", weight: 2 }],
    algorithm: { groupsPerStep, groupSize: 2 },
  }),
  taskSizes: [
    { train: size, evaluate: null },
    { train: size, evaluate: null },
  ],
});

test("the k-th group is entry k mod B of step floor(k / B) + 1, however the draws are cut", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }),
      fc.option(fc.integer({ min: 1, max: 9 })),
      fc.array(fc.nat({ max: 6 }), { maxLength: 8 }),
      (groupsPerStep, size, cuts) => {
        const run = of(groupsPerStep, size);
        const drawn: unknown[] = [];
        for (const count of cuts) drawn.push(...drawGroups(run, drawn.length, count));
        const steps = Array.from({ length: Math.ceil(drawn.length / groupsPerStep) }, (_, at) =>
          pickInstances(run.config, run.taskSizes, at + 1, "train"),
        );
        expect(drawn).toEqual(steps.flat().slice(0, drawn.length));
        expect(drawn).toHaveLength(cuts.reduce((a, b) => a + b, 0));
      },
    ),
  );
});

test("none where there are no train instances", () => {
  expect(drawGroups(of(2, 0), 3, 2)).toEqual([]);
});
