import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildConfig } from "../testing/build-snapshot.ts";
import { pickInstances } from "./pick-instances.ts";

const config = (groupsPerStep: number, weights: number[] = [1], seed = 0) =>
  buildConfig({
    seed,
    taskSets: weights.map((weight, at) => ({ name: `set-${at}`, weight })),
    algorithm: { groupsPerStep, groupSize: 2 },
    evaluation: { samples: 10 },
  });
const sizes = (...train: (number | null)[]) => train.map((size) => ({ train: size, evaluate: 8 }));

describe("train instances", () => {
  test("come once per epoch, whatever the step size, and in another order in the next", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 12 }),
        fc.nat(1000),
        (size, perStep, seed) => {
          const steps = Math.ceil((3 * size) / perStep);
          const drawn = Array.from({ length: steps }, (_, at) =>
            pickInstances(config(perStep, [1], seed), sizes(size), at + 1, "train"),
          ).flat();
          for (let epoch = 0; epoch < 3; epoch++) {
            const indices = drawn.slice(epoch * size, (epoch + 1) * size).map(({ instanceIndex }) => instanceIndex);
            expect(new Set(indices).size).toBe(size);
            expect(Math.max(...indices)).toBe(size - 1);
          }
        },
      ),
      { numRuns: 50 },
    );
    const order = (step: number) => pickInstances(config(30), sizes(30), step, "train").map((it) => it.instanceIndex);
    expect(order(1)).not.toEqual(order(2));
    expect(order(1)).not.toEqual(order(1).toSorted((a, b) => a - b));
  });

  test("of staged sets come in their steps only, and each set goes on where it was", () => {
    const Span = fc
      .tuple(fc.integer({ min: 1, max: 8 }), fc.option(fc.nat(6)), fc.integer({ min: 1, max: 9 }))
      .map(([fromStep, more, weight]) => ({ fromStep, untilStep: more === null ? null : fromStep + more, weight }));
    const scene = fc.record({
      spans: fc.array(Span, { minLength: 1, maxLength: 4 }),
      perStep: fc.integer({ min: 1, max: 7 }),
      size: fc.integer({ min: 1, max: 30 }),
    });
    fc.assert(
      fc.property(scene, ({ spans, perStep, size }) => {
        const staged = buildConfig({
          taskSets: spans.map((span, at) => ({ name: `set-${at}`, ...span })),
          algorithm: { groupsPerStep: perStep, groupSize: 2 },
        });
        const drawn = spans.map((): number[] => []);
        for (let step = 1; step <= 16; step++) {
          const isIn = ({ fromStep, untilStep }: (typeof spans)[number]) =>
            fromStep <= step && step <= (untilStep ?? step);
          const groups = pickInstances(staged, sizes(...spans.map(() => size)), step, "train");
          expect(groups).toHaveLength(spans.some(isIn) ? perStep : 0);
          for (const { taskSet, instanceIndex } of groups) {
            expect(spans[taskSet] && isIn(spans[taskSet])).toBe(true);
            drawn[taskSet]?.push(instanceIndex);
          }
        }
        // Whatever steps it was left out of, no instance comes twice in an epoch.
        for (const indices of drawn)
          for (let epoch = 0; epoch * size < indices.length; epoch++) {
            const own = indices.slice(epoch * size, (epoch + 1) * size);
            expect(new Set(own).size).toBe(own.length);
          }
      }),
    );
  });

  test("of a preflight are those of the first step, over and over", () => {
    const overfit = buildConfig({ preflight: "overfit", algorithm: { groupsPerStep: 6, groupSize: 2 } });
    const steps = [1, 2, 30].map((step) => pickInstances(overfit, sizes(100), step, "train"));
    expect(steps[1]).toEqual(steps[0]);
    expect(steps[2]).toEqual(steps[0]);
    expect(steps[0]).toEqual(pickInstances({ ...overfit, preflight: "none" }, sizes(100), 1, "train"));
  });

  test("are a function of seed and step", () => {
    const pick = (seed: number, step: number) => pickInstances(config(8, [1, 2], seed), sizes(null, 20), step, "train");
    expect(pick(1, 3)).toEqual(pick(1, 3));
    expect(pick(1, 3)).not.toEqual(pick(2, 3));
    expect(pick(1, 3)).not.toEqual(pick(1, 4));
  });

  test("of an endless set never come again", () => {
    const drawn = Array.from({ length: 200 }, (_, at) =>
      pickInstances(config(16), sizes(null), at + 1, "train"),
    ).flat();
    expect(new Set(drawn.map(({ instanceIndex }) => instanceIndex)).size).toBe(200 * 16);
  });

  test("follow the weights in every step, and in the long run to the last unit", () => {
    const counts = [0, 0, 0];
    for (let step = 1; step <= 100; step++) {
      const groups = pickInstances(config(7, [1, 1, 98]), sizes(null, null, null), step, "train");
      expect(groups).toHaveLength(7);
      for (const { taskSet } of groups) counts[taskSet] = (counts[taskSet] ?? 0) + 1;
    }
    expect(counts).toEqual([7, 7, 686]);
  });

  test("repeat no instance when remainders move between the sets", () => {
    const drawn = Array.from({ length: 40 }, (_, at) =>
      pickInstances(config(3, [1, 1]), sizes(60, 60), at + 1, "train"),
    );
    const keys = drawn.flat().map(({ taskSet, instanceIndex }) => `${taskSet} ${instanceIndex}`);
    expect(new Set(keys).size).toBe(120);
  });

  test("stay within a set's own size limit, and skip a set without instances", () => {
    const limited = buildConfig({ taskSets: [{ name: "a", size: 3 }], algorithm: { groupsPerStep: 30, groupSize: 1 } });
    const indices = pickInstances(limited, sizes(100), 1, "train").map(({ instanceIndex }) => instanceIndex);
    expect(new Set(indices)).toEqual(new Set([0, 1, 2]));
    expect(new Set(pickInstances(config(4, [1, 1]), sizes(0, 9), 1, "train").map((it) => it.taskSet))).toEqual(
      new Set([1]),
    );
    expect(pickInstances(config(4), sizes(0), 1, "train")).toEqual([]);
  });
});

describe("held-out instances", () => {
  test("are the same in every evaluation and for every seed, and never of the train split", () => {
    const first = pickInstances(config(4, [1, 1], 1), sizes(9, 9), 0, "evaluate");
    expect(pickInstances(config(4, [1, 1], 2), sizes(9, 9), 7, "evaluate")).toEqual(first);
    expect(first.every(({ split }) => split === "evaluate")).toBe(true);
    expect(pickInstances(config(4), sizes(9), 1, "train").every(({ split }) => split === "train")).toBe(true);
  });

  test("are shared by weight; what a small set lacks goes to the others; at most all of them", () => {
    const count = (...evaluate: (number | null)[]) => {
      const groups = pickInstances(
        config(
          1,
          evaluate.map(() => 1),
        ),
        evaluate.map((size) => ({ train: null, evaluate: size })),
        0,
        "evaluate",
      );
      expect(new Set(groups.map((it) => `${it.taskSet} ${it.instanceIndex}`)).size).toBe(groups.length);
      return evaluate.map((_, taskSet) => groups.filter((it) => it.taskSet === taskSet).length);
    };
    expect(count(null, null)).toEqual([5, 5]);
    expect(count(2, null)).toEqual([2, 8]);
    expect(count(2, 3, 1)).toEqual([2, 3, 1]);
    expect(count(100, 100, 100)).toEqual([4, 3, 3]);
    expect(count(0)).toEqual([0]);
  });
});
