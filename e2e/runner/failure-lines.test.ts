import { expect, test } from "vitest";
import { failureLines } from "./failure-lines.ts";
import type { Failure } from "./suite-result.ts";

const failure = (name: string, message = ""): Failure => ({ name, message });

test("a failure is told by name and with what it said, indented and without colours", () => {
  expect(
    failureLines([failure("a.test.ts: adds", "\u001b[31mexpected 1 to be 2\u001b[39m\n  at a.test.ts:3")]),
  ).toEqual(["failed: a.test.ts: adds", "    expected 1 to be 2", "      at a.test.ts:3"]);
});

test("a failure without a message is its name alone", () => {
  expect(failureLines([failure("knip", " \n")])).toEqual(["failed: knip"]);
  expect(failureLines([])).toEqual([]);
});

test("of a long message the first fifteen lines are told, and that it goes on", () => {
  const message = Array.from({ length: 40 }, (_, at) => `line ${at}`).join("\n");
  const lines = failureLines([failure("long", message)]);
  expect(lines).toHaveLength(16);
  expect(lines.at(-1)).toBe("    line 14 …");
});

test("of a message in one huge line the first 1,500 characters are told", () => {
  const [, told = ""] = failureLines([failure("wide", "x".repeat(100_000))]);
  expect(told).toBe(`    ${"x".repeat(1_500)} …`);
});

test("all failures are named, the first ten with their messages", () => {
  const many = Array.from({ length: 12 }, (_, at) => failure(`test ${at}`, `said ${at}`));
  const lines = failureLines(many);
  expect(lines.filter((line) => line.startsWith("failed: "))).toHaveLength(12);
  expect(lines.filter((line) => line.startsWith("    said "))).toHaveLength(10);
  expect(lines.at(-1)).toBe("(messages of the first 10 of 12 failures)");
});
