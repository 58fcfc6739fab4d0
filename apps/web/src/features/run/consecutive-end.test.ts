import { expect, test } from "vitest";
import { consecutiveEnd } from "./consecutive-end.ts";

const seqs = (...list: number[]) => list.map((seq) => ({ seq }));

test("order and doubles do not matter", () => {
  expect(consecutiveEnd(seqs(3, 1, 2, 2, 4))).toEqual(seqs(1, 2, 3, 4));
});

test("what lies before a hole is left out until the hole is filled", () => {
  expect(consecutiveEnd(seqs(1, 2, 5, 6))).toEqual(seqs(5, 6));
  expect(consecutiveEnd(seqs(1, 2, 5, 6, 3, 4))).toEqual(seqs(1, 2, 3, 4, 5, 6));
  expect(consecutiveEnd([])).toEqual([]);
});
