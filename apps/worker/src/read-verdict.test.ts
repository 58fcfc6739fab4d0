import { describe, expect, test } from "vitest";
import { readVerdict } from "./read-verdict.ts";

const given = (change: object) => ({ reward: 1, success: true, parts: {}, notes: null, ...change });
const read = (change: object) => readVerdict(given(change), "my-task");

describe("fault 22: a reward that is none", () => {
  test("a boolean is 1 or 0", () => {
    expect([true, false].map((reward) => read({ reward }).reward)).toEqual([1, 0]);
  });

  test.each([[null], [undefined], [Number.NaN]])("%s is missing, never 0", (reward) => {
    expect(() => read({ reward })).toThrow(/verifier of my-task gave no reward/u);
  });

  test.each([["1"], [Number.POSITIVE_INFINITY], [{}]])("%s is refused, with the task named", (reward) => {
    expect(() => read({ reward })).toThrow(/my-task/u);
  });

  test.each([
    [0.5],
    [null],
    [given({ parts: { far: Number.NEGATIVE_INFINITY } })],
    [{ reward: 1, parts: {} }],
    [given({ success: "yes" })],
  ])("%j is no verdict, and the task is named", (value) => {
    expect(() => readVerdict(value, "my-task")).toThrow(/the verifier of my-task/u);
  });
});

test("fault 30: parts differ from rollout to rollout: each keeps its own, text as text, what is missing left out", () => {
  const parts = [
    { score: 1, acc: 1 },
    { score: 0 },
    {},
    { score: 1, extra: "text" },
    { score: Number.NaN, acc: null, late: undefined, passed: true },
  ];
  const kept = [{ score: 1, acc: 1 }, { score: 0 }, {}, { score: 1, extra: "text" }, { passed: 1 }];
  expect(parts.map((own) => read({ parts: own }).parts)).toEqual(kept);
  expect([...parts].reverse().map((own) => read({ parts: own }).parts)).toEqual([...kept].reverse());
  expect(readVerdict({ reward: 0.5, success: false }, "my-task")).toEqual({
    reward: 0.5,
    success: false,
    parts: {},
    notes: null,
  });
  expect(read({ parts: { long: "🙂".repeat(300) } }).parts.long).toBe("🙂".repeat(200));
});
