import type { TokenRange } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { expect, test } from "vitest";
import { countPlaces, merged, without } from "./range-sets.ts";

const ranges = fc.array(
  fc
    .tuple(fc.nat({ max: 40 }), fc.nat({ max: 12 }))
    .map(([start, length]): TokenRange => ({ start, end: start + length })),
  { maxLength: 8 },
);
const places = (list: readonly TokenRange[]): Set<number> =>
  new Set(list.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, at) => start + at)));

test("ranges behave as the sets of their places", () => {
  fc.assert(
    fc.property(ranges, ranges, (a, b) => {
      expect(countPlaces(a)).toBe(places(a).size);
      expect(places(merged(a))).toEqual(places(a));
      expect(places(without(a, b))).toEqual(new Set([...places(a)].filter((place) => !places(b).has(place))));
    }),
  );
});

test("what is left keeps the order in which it was given", () => {
  expect(
    without(
      [
        { start: 20, end: 30 },
        { start: 0, end: 10 },
      ],
      [{ start: 4, end: 22 }],
    ),
  ).toEqual([
    { start: 22, end: 30 },
    { start: 0, end: 4 },
  ]);
});
