"use client";
/** How compared runs are told apart on a page: what each is called, and the line it is drawn with. */
import type { Comparison, RunSummary } from "@rolldeck/contracts/api/runs";
import { useMemo } from "react";
import { type RunStroke, runStrokes } from "../../charts/run-colour.ts";

export type Strokes = ReadonlyMap<string, RunStroke>;
export type Labels = ReadonlyMap<string, string>;

/** What every table and chart of compared runs takes. */
export interface Compared {
  readonly comparison: Comparison;
  readonly labels: Labels;
  readonly strokes: Strokes;
}

/** @param named makes the runs' labels; keep it the same between renders */
export function useLook(
  runs: readonly RunSummary[] | undefined,
  named: (runs: readonly RunSummary[]) => Labels,
): Pick<Compared, "labels" | "strokes"> {
  return useMemo(() => ({ labels: named(runs ?? []), strokes: runStrokes(runs ?? []) }), [runs, named]);
}
