import { expect, test } from "vitest";
import { runColour, runStrokes } from "./run-colour.ts";

const runs = Array.from({ length: 24 }, (_, ordinal) => ({ runId: `run-${ordinal}`, ordinal }));

test("a run's colour depends on the run alone; eight that follow each other have eight", () => {
  expect(new Set(runs.slice(5, 13).map(runColour)).size).toBe(8);
  expect(runColour({ ordinal: 9 })).toBe(runColour({ ordinal: 1 }));
  for (const run of runs) expect(runStrokes([run]).get(run.runId)?.colour).toBe(runColour(run));
});

test("runs that share a colour differ by dash", () => {
  const strokes = runStrokes(runs);
  const shared = runs.filter((run) => runColour(run) === runColour({ ordinal: 0 }));
  expect(shared).toHaveLength(3);
  expect(new Set(shared.map((run) => strokes.get(run.runId)?.dash)).size).toBe(3);
});
