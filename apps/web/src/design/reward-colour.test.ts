import { expect, test } from "vitest";
import { deviation, rewardColour } from "./reward-colour.ts";

test("siblings are coloured around their group's mean, whatever the scale", () => {
  expect(deviation(1, 0.5, 0.5)).toBe(1);
  expect(deviation(0, 0.5, 0.5)).toBe(-1);
  expect(deviation(0.5, 0.5, 0.5)).toBe(0);
  expect(deviation(100, 50, 100)).toBe(0.5);
});

test("a missing reward has no colour, equal rewards are all neutral", () => {
  expect(deviation(null, 0.5, 0.5)).toBeNull();
  expect(rewardColour(null)).toBe("transparent");
  expect(deviation(1, 1, 0)).toBe(0);
});

test("the two sides use two ends of the scale", () => {
  expect(rewardColour(-0.5)).toContain("--reward-low");
  expect(rewardColour(0.5)).toContain("--reward-high");
});
