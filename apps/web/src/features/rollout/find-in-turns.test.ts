import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { findInTurns, mostShown } from "./find-in-turns.ts";

const turn = (number: number, said: string, output = ""): TurnView => ({
  turn: number,
  thread: "",
  notes: [{ kind: "repair", message: "a Quote was added" }],
  added: [{ origin: "hint", preview: { text: "two turns left", cutCharacters: 0 }, tokens: 3 }],
  sampled: { text: said, cutCharacters: 0 },
  reasoning: null,
  content: null,
  promptTokens: 0,
  sampledTokens: 0,
  cacheHitTokens: 0,
  policyVersion: 0,
  stopReason: "stop",
  sampleMs: 1,
  parseError: null,
  meanLogprob: null,
  calls: [
    {
      index: 0,
      name: "bash",
      arguments: {},
      state: "ended",
      output: { text: output, cutCharacters: 0 },
      error: null,
      durationMs: 1,
      wholeBytes: null,
      artifacts: [],
    },
  ],
  contextChange: null,
  promptRanges: [],
  sampledRange: { start: 0, end: 0 },
  at: "2026-11-30T00:00:00Z",
});

test("finds words in every part of a turn, whatever their case, with where they stand", () => {
  const turns = [turn(0, "I QUOTE it"), turn(1, "done", "a quote\nhere")];
  const { found, total } = findInTurns(turns, "quote");
  expect(total).toBe(4);
  expect(found.map(({ turn: number, part, match }) => [number, part, match])).toEqual([
    [0, "policy", "QUOTE"],
    [0, "note", "Quote"],
    [1, "note", "Quote"],
    [1, "bash result", "quote"],
  ]);
  expect(found[3]).toMatchObject({ before: "a ", after: " here" });
});

test("nothing is found by nothing, and more than can be shown is counted", () => {
  expect(findInTurns([turn(0, "x")], "  ")).toEqual({ found: [], total: 0 });
  const { found, total } = findInTurns([turn(0, "y".repeat(500))], "y");
  expect([found.length, total]).toEqual([mostShown, 500]);
});

test("any text is looked for as it stands, never as a pattern", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), (text) => {
      fc.pre(text.trim() !== "");
      const { found } = findInTurns([turn(0, `<${text}>`)], text);
      expect(found.some((each) => each.part === "policy")).toBe(true);
    }),
  );
});
