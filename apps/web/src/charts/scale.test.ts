import fc from "fast-check";
import { expect, test } from "vitest";
import { linearScale, logScale, stepTicks } from "./scale.ts";

const finite = fc.double({ min: -1e9, max: 1e9, noNaN: true });

test("every value lies inside the domain and there are at most five ticks", () => {
  fc.assert(
    fc.property(fc.array(finite, { minLength: 1, maxLength: 50 }), (values) => {
      const scale = linearScale(values);
      expect(scale.ticks.length).toBeGreaterThanOrEqual(2);
      expect(scale.ticks.length).toBeLessThanOrEqual(5);
      for (const value of values) {
        expect(scale.position(value)).toBeGreaterThanOrEqual(-1e-9);
        expect(scale.position(value)).toBeLessThanOrEqual(1 + 1e-9);
      }
    }),
  );
});

test("ticks are round", () => {
  expect(linearScale([0.2, 0.98]).ticks).toEqual([0.2, 0.4, 0.6, 0.8, 1]);
  expect(linearScale([]).ticks.length).toBeGreaterThan(1);
});

test("a constant gets room and keeps 0 as its floor", () => {
  const scale = linearScale([0, 0]);
  expect(scale.domain[0]).toBe(0);
  expect(linearScale([3, 3]).position(3)).toBeGreaterThan(0.2);
});

test("log scales need positive values; the rest of the values is left to the caller", () => {
  expect(logScale([0, -1])).toBeNull();
  const scale = logScale([1e-6, 3e-3]);
  expect(scale?.domain).toEqual([1e-6, 1e-2]);
  expect(scale?.position(1e-4)).toBeCloseTo(0.5, 9);
});

test("steps are whole", () => {
  expect(stepTicks([0, 45], 4)).toEqual([0, 20, 40]);
  expect(stepTicks([0, 2], 6)).toEqual([0, 1, 2]);
  expect(stepTicks([7, 7], 6)).toEqual([7]);
  expect(stepTicks([1, 12], 4)).toEqual([5, 10]);
  expect(stepTicks([1, 12], 6)).toEqual([2, 4, 6, 8, 10, 12]);
});
