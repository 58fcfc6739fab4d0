"use client";
import type { Matrix } from "@rolldeck/contracts/api/runs";
import { type JSX, useMemo } from "react";
import { rewardColour } from "../../design/reward-colour.ts";
import { formatCount } from "../../format/numbers.ts";
import { CellGlyph, type CellKind, cellKind, cellKinds, kindLabels } from "./cell-glyph.tsx";

/** How many rollouts of the step are where. */
export function MatrixTally({ matrix }: { matrix: Matrix }): JSX.Element {
  const counts = useMemo(() => {
    const map = new Map<CellKind, number>();
    for (const group of matrix.groups)
      for (const cell of group.cells) map.set(cellKind(cell), (map.get(cellKind(cell)) ?? 0) + 1);
    return map;
  }, [matrix.groups]);
  return (
    <span className="flex flex-wrap items-center gap-3 text-sm text-g8">
      {cellKinds
        .filter((kind) => counts.has(kind))
        .map((kind) => (
          <span
            key={kind}
            title={kindLabels[kind]}
            className={`num inline-flex items-center gap-1 ${kind === "failed" ? "text-failed" : ""}`}
          >
            <CellGlyph kind={kind} />
            {formatCount(counts.get(kind) ?? 0)}
            <span className="sr-only">{kindLabels[kind]}</span>
          </span>
        ))}
    </span>
  );
}

/** What colours and shapes mean. */
export function MatrixLegend(): JSX.Element {
  return (
    <div className="mt-6 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-g7">
      <span className="inline-flex items-center gap-1.5">
        below
        <span aria-hidden="true" className="flex">
          {[-1, -0.5, 0, 0.5, 1].map((value) => (
            <span key={value} className="h-3 w-5" style={{ background: rewardColour(value) }} />
          ))}
        </span>
        above the group's mean reward
      </span>
      {cellKinds.map((kind) => (
        <span key={kind} className="inline-flex items-center gap-1">
          <CellGlyph kind={kind} />
          {kindLabels[kind]}
        </span>
      ))}
    </div>
  );
}
