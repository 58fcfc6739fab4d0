import { expect, test } from "vitest";
import { hasTerm, terms, withoutTerm, withTerm } from "./run-query.ts";

test("a chip sets one value per key and leaves the words alone", () => {
  expect(withTerm("key chain", "status", "failed")).toBe("status:failed key chain");
  expect(withTerm("status:running key", "status", "failed")).toBe("status:failed key");
  expect(withTerm("status:running key", "status", null)).toBe("key");
  expect(hasTerm("status:failed key", "status:failed")).toBe(true);
});

test("a term can be taken out", () => {
  expect(terms(" tag:x  -tag:y word ")).toEqual(["tag:x", "-tag:y", "word"]);
  expect(withoutTerm("tag:x -tag:y", "tag:x")).toBe("-tag:y");
});
