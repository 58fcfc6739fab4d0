import fc from "fast-check";
import { expect, test } from "vitest";
import { permute } from "./permute.ts";

test("is a bijection for every size and key", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), (size, key) => {
      const images = Array.from({ length: size }, (_, index) => permute(index, size, key));
      expect(new Set(images).size).toBe(size);
      expect(images.every((image) => image >= 0 && image < size)).toBe(true);
    }),
  );
});

test("spreads: each place is about equally likely for each index", () => {
  const hits = Array.from({ length: 10 }, () => 0);
  for (let key = 0; key < 5_000; key++) {
    const image = permute(3, 10, key);
    hits[image] = (hits[image] ?? 0) + 1;
  }
  for (const count of hits) expect(Math.abs(count - 500)).toBeLessThan(120);
});

test("takes sizes up to 2^31 and refuses what is outside", () => {
  expect(permute(2 ** 31 - 1, 2 ** 31, 5)).toBeLessThan(2 ** 31);
  for (const [index, size] of [
    [-1, 5],
    [5, 5],
    [0.5, 5],
    [0, 0],
    [0, 2 ** 31 + 1],
  ] as const) {
    expect(() => permute(index, size, 1)).toThrow(RangeError);
  }
});
