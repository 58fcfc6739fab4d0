/** The pieces under the simulator: order of events, shared progress, step functions, normal numbers. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventQueue } from "./event-queue.ts";
import { standardNormal } from "./normal.ts";
import { type Piece, SharedProgress } from "./shared-progress.ts";
import { meanOf, peakOf, StepRecorder } from "./step-function.ts";

const runAll = (queue: EventQueue): void => {
  while (queue.step());
};

test("events come in order of time, those of one time in order of entry", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 200 }), (delays) => {
      const queue = new EventQueue(5);
      const seen: (readonly [number, number])[] = [];
      for (const [order, delay] of delays.entries()) queue.after(delay, () => seen.push([queue.now, order]));
      runAll(queue);
      const expected = delays.map((delay, order) => [5 + delay, order] as const);
      expect(seen).toEqual(expected.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
    }),
  );
});

test("an event that enters another at the same time comes before it", () => {
  const queue = new EventQueue(0);
  const seen: string[] = [];
  queue.after(1, () => {
    seen.push("first");
    queue.after(0, () => seen.push("third"));
  });
  queue.after(1, () => seen.push("second"));
  runAll(queue);
  expect(seen).toEqual(["first", "second", "third"]);
});

describe("shared progress", () => {
  test("is processor sharing: a piece that comes later slows the first", () => {
    const queue = new EventQueue(0);
    const shared = new SharedProgress(queue, (pieces) => 1 / pieces);
    const ended: Record<string, number> = {};
    shared.add(10, () => Object.assign(ended, { long: queue.now }));
    queue.after(4, () => shared.add(2, () => Object.assign(ended, { short: queue.now })));
    runAll(queue);
    // Alone to 4; both at half speed until the short one is done at 8; alone again for the last 4 units.
    expect(ended).toEqual({ short: 8, long: 12 });
  });

  test("stands still while halted, and a removed piece never ends", () => {
    const queue = new EventQueue(0);
    const shared = new SharedProgress(queue, (pieces) => 1 / pieces);
    const ended: number[] = [];
    shared.add(10, () => ended.push(queue.now));
    const other: Piece = shared.add(10, () => ended.push(-1));
    queue.after(4, () => shared.remove(other));
    queue.after(6, () => shared.halt(true));
    queue.after(106, () => shared.halt(false));
    runAll(queue);
    expect(ended).toEqual([112]);
  });

  test("does as much work as its rate allows, whoever comes and goes", () => {
    const piece = fc.record({ at: fc.nat({ max: 50 }), units: fc.integer({ min: 1, max: 50 }) });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 30 }), (pieces) => {
        const queue = new EventQueue(0);
        const shared = new SharedProgress(queue, (count) => 1 / count);
        let last = 0;
        for (const { at, units } of pieces) queue.after(at, () => shared.add(units, () => (last = queue.now)));
        runAll(queue);
        const work = pieces.reduce((sum, { units }) => sum + units, 0);
        // Busy without a break from some arrival on: never longer than all the work after the last arrival.
        expect(last).toBeLessThanOrEqual(50 + work + 1e-6);
        expect(last).toBeGreaterThanOrEqual(work - 1e-6);
        expect(shared.size).toBe(0);
      }),
    );
  });
});

test("a step function's mean is its area over the time", () => {
  const use = new StepRecorder();
  use.record(10, 2);
  use.record(20, 6);
  use.record(20, 4);
  use.record(30, 4);
  use.record(40, 0);
  expect(use.at).toEqual([10, 20, 40]);
  expect(meanOf(use, 0, 40)).toBe((10 * 2 + 20 * 4) / 40);
  expect(meanOf(use, 15, 25)).toBe(3);
  expect(meanOf(use, 50, 60)).toBe(0);
  expect(meanOf(use, 5, 5)).toBe(0);
  expect(peakOf(use)).toBe(4);
});

test("normal numbers have mean 0, deviation 1 and the normal's tails, and depend on every part of the key", () => {
  const many = Array.from({ length: 20_000 }, (_, at) => standardNormal("test", at));
  const mean = many.reduce((sum, z) => sum + z, 0) / many.length;
  const variance = many.reduce((sum, z) => sum + (z - mean) ** 2, 0) / many.length;
  expect(Math.abs(mean)).toBeLessThan(0.03);
  expect(Math.abs(variance - 1)).toBeLessThan(0.04);
  const beyond = many.filter((z) => Math.abs(z) > 1.96).length / many.length;
  expect(beyond).toBeGreaterThan(0.045);
  expect(beyond).toBeLessThan(0.055);
  expect(standardNormal(1, 2)).not.toBe(standardNormal(2, 1));
});
