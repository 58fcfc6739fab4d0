import { expect, test } from "vitest";
import { nextSmoothing, smooth } from "./smooth.ts";

const line = (...values: (number | null)[]) => values.map((value, x) => ({ x, value }));

test("weight 0 changes nothing", () => {
  expect(smooth(line(1, null, 3), 0)).toEqual([1, null, 3]);
});

test("a constant stays that constant from its first point on", () => {
  for (const value of smooth(line(5, 5, 5, 5), 0.9)) expect(value).toBeCloseTo(5, 12);
});

test("missing stays missing and does not pull the rest down", () => {
  expect(smooth(line(2, null, 2), 0.6)).toEqual([2, null, 2]);
});

test("older points count by their distance in x, not by their number", () => {
  const [, dense] = [0, smooth(line(0, 1, 1), 0.5).at(-1)];
  expect(dense).toBeCloseTo((1 + 0.5) / (1 + 0.5 + 0.25), 12);
  const sparse = smooth(
    [
      { x: 0, value: 0 },
      { x: 2, value: 1 },
    ],
    0.5,
  ).at(-1);
  expect(sparse).toBeCloseTo(1 / 1.25, 12);
});

test("the key goes round the levels", () => {
  expect([0, 0.6, 0.9].map(nextSmoothing)).toEqual([0.6, 0.9, 0]);
});
