import { expect, test } from "vitest";
import { passedOf, passedWords } from "./passed-of.ts";

const samples = (...successes: (boolean | null)[]) => successes.map((success) => ({ success }));

test("n of m samples passed; those without a verdict count as neither", () => {
  const five = passedOf(samples(true, false, null, true, false));
  expect(five).toEqual({ passed: 2, graded: 4, samples: 5 });
  expect(five && passedWords(five)).toBe("2 of 4 samples of this instance passed, 1 without a verdict");
  const all = passedOf(samples(false, false));
  expect(all && passedWords(all)).toBe("0 of 2 samples of this instance passed");
});

test("a single sample has no spread, and nothing is said before a verdict", () => {
  expect(passedOf(samples(true))).toBeNull();
  expect(passedOf(samples(null, null))).toBeNull();
});
