import { expect, test } from "vitest";
import { noPatchWords, readPatchState } from "./no-patch.tsx";
import { patchFailure } from "./patch-failure.ts";

const state = (change: object) =>
  readPatchState(JSON.stringify({ version: 1, state: "collected", bytes: 0, notes: "", ...change }));

test("a patch that is larger than what is shown is told as that, with its size and the limit", () => {
  const large = noPatchWords(state({ state: "too_large", bytes: 12 * 1024 * 1024 }), true);
  expect(large.title.replace(/\s/gu, " ")).toBe("A patch of 12.0 MiB is larger than what is shown (10.0 MiB)");
  expect(large.words).toContain("can be downloaded");
  expect(noPatchWords(state({ state: "too_large", bytes: 1e9 }), false).words).toContain("too large to be kept");
});

test("the other reasons have words of their own; what can't be read has none made up", () => {
  expect(noPatchWords(state({ state: "no_base" }), false).title).toContain("can't be told");
  expect(noPatchWords(state({ state: "broken" }), false).title).toContain("broke");
  expect([readPatchState("{"), readPatchState("{}")]).toEqual([null, null]);
});

test("a report of a patch that was too large does not say that it was tried", () => {
  const patch = { bytes: 12 * 1024 * 1024, applied: false, by: null, message: "" };
  expect(patchFailure(patch)).toContain("larger than what is graded");
  expect(patchFailure({ ...patch, bytes: 12 })).toContain("could not be applied");
});
