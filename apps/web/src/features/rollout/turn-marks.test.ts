import { expect, test } from "vitest";
import { changeCounts, turnMarks } from "./turn-marks.ts";

const plain: Parameters<typeof turnMarks>[0] = {
  stopReason: "stop",
  parseError: null,
  calls: [],
  contextChange: null,
  added: [],
  notes: [],
};
const kinds = (turn: Parameters<typeof turnMarks>[0]) => turnMarks(turn).map(({ kind }) => kind);

test("an ordinary turn has no mark", () => {
  expect(
    kinds({ ...plain, added: [{ origin: "observation", preview: { text: "", cutCharacters: 0 }, tokens: 1 }] }),
  ).toEqual([]);
});

test("each unusual thing has its own", () => {
  expect(kinds({ ...plain, parseError: "write a call" })).toEqual(["retry"]);
  // A cut turn that the model was told of is one thing, not two.
  expect(kinds({ ...plain, stopReason: "length", parseError: "your turn was cut" })).toEqual(["cut"]);
  expect(kinds({ ...plain, added: [{ origin: "hint", preview: { text: "", cutCharacters: 0 }, tokens: 1 }] })).toEqual([
    "hint",
  ]);
  const contextChange = { kind: "restart", keptTokens: 3, droppedTokens: 1204, newTokens: 9 } as const;
  expect(turnMarks({ ...plain, contextChange })[0]?.label).toBe("context restarted");
  expect(changeCounts(contextChange)).toBe("1,204 tokens dropped, 3 kept, 9 new");
  expect(kinds({ ...plain, notes: [{ kind: "usage", message: "12 against 13" }] })).toEqual(["note"]);
});
