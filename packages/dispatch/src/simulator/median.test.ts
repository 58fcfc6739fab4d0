import { expect, test } from "vitest";
import { median } from "./median.ts";

test("the middle one, of two the mean, of none nothing", () => {
  expect(median([30, 10, 20])).toBe(20);
  expect(median([64_000, 60_000])).toBe(62_000);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNull();
});
