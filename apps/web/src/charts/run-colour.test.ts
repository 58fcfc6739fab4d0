import { expect, test } from "vitest";
import { runColour, runStrokes } from "./run-colour.ts";

test("a run's colour depends on its id alone", () => {
  expect(runColour("01kv8r7q0000abcdefghijkmnp")).toBe(runColour("01kv8r7q0000abcdefghijkmnp"));
  expect(runColour("x")).toMatch(/^var\(--run-[0-7]\)$/);
});

test("runs that share a colour differ by dash", () => {
  const ids = Array.from({ length: 24 }, (_, index) => `run-${index}`);
  const strokes = runStrokes(ids);
  const shared = ids.filter((id) => strokes.get(id)?.colour === strokes.get("run-0")?.colour);
  expect(shared.length).toBeGreaterThan(1);
  expect(strokes.get(shared[0] ?? "")?.dash).not.toBe(strokes.get(shared[1] ?? "")?.dash);
  for (const id of ids) expect(strokes.get(id)?.colour).toBe(runColour(id));
});
