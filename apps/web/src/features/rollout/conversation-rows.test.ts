import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { expect, test } from "vitest";
import {
  formatTokenRange,
  parseTokenRange,
  rowOfToken,
  rowOfTurn,
  tokenRows,
  turnOfToken,
} from "./conversation-rows.ts";

const turn = (index: number, start: number, end: number): TurnView => ({
  turn: index,
  thread: "",
  notes: [],
  reasoning: null,
  content: null,
  contextChange: null,
  added: [],
  sampled: { text: "", cutCharacters: 0 },
  promptTokens: start,
  sampledTokens: end - start,
  cacheHitTokens: 0,
  policyVersion: 0,
  stopReason: "stop",
  sampleMs: 1,
  parseError: null,
  meanLogprob: null,
  calls: [],
  promptRanges: [{ start: 0, end: start }],
  sampledRange: { start, end },
  at: "2026-11-29T00:00:00Z",
});
const turns = [turn(0, 300, 310), turn(1, 330, 900)];

test("every token is in exactly one row, in order", () => {
  const rows = tokenRows(turns, 950);
  const covered = rows.flatMap((row) =>
    row.kind === "chunk" ? Array.from({ length: row.end - row.start }, (_, index) => row.start + index) : [],
  );
  expect(covered).toEqual(Array.from({ length: 950 }, (_, index) => index));
});

test("a changed context stands where it changed, also between tokens", () => {
  const contextChange = { kind: "restart", keptTokens: 1, droppedTokens: 2, newTokens: 3 } as const;
  const kinds = tokenRows([{ ...turn(0, 300, 310), contextChange }, turn(1, 330, 340)], 340).map((row) => row.kind);
  expect(kinds).toEqual(["head", "chunk", "chunk", "chunk", "reset", "head", "chunk", "chunk"]);
});

test("tokens stay in the order they were made in, however the turns are read", () => {
  const starts = tokenRows([turn(1, 330, 900), turn(0, 300, 310)], 950).flatMap((row) =>
    row.kind === "chunk" ? [row.start] : [],
  );
  expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  expect(starts[0]).toBe(0);
});

test("turns and tokens are found by row", () => {
  const rows = tokenRows(turns, 950);
  const row = rows[rowOfToken(rows, 335)];
  expect(row?.kind === "chunk" && row.turn).toBe(1);
  expect(rows[rowOfTurn(rows, 1)]?.kind).toBe("head");
  expect(rowOfToken(rows, 5000)).toBe(-1);
});

test("a token belongs to the turn it was sampled in or came for", () => {
  expect([0, 305, 310, 330, 899, 900].map((token) => turnOfToken(turns, token))).toEqual([0, 0, 1, 1, 1, null]);
});

test("token ranges of a link", () => {
  expect(parseTokenRange("120-160")).toEqual({ start: 120, end: 160 });
  expect(parseTokenRange("160-120")).toEqual({ start: 120, end: 160 });
  expect(parseTokenRange("7")).toEqual({ start: 7, end: 7 });
  for (const bad of [null, "", "x", "1-", "-3", "1-2-3", "999999999"]) expect(parseTokenRange(bad)).toBeNull();
  expect(formatTokenRange(7, 7)).toBe("7");
  expect(formatTokenRange(7, 9)).toBe("7-9");
});
