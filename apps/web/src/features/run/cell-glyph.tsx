/** What state a rollout is in, as a 12 px shape: read without colour. */
import type { MatrixCell } from "@rolldeck/contracts/api/runs";
import { endingRule } from "@rolldeck/contracts/endings";
import type { JSX } from "react";
import type { z } from "zod";

export type Cell = z.infer<typeof MatrixCell>;
export const cellKinds = [
  "waiting",
  "queued",
  "init",
  "run",
  "evaluate",
  "success",
  "no-success",
  "cut",
  "failed",
  "cancelled",
] as const;
export type CellKind = (typeof cellKinds)[number];

export const kindLabels: Record<CellKind, string> = {
  waiting: "waiting for a slot",
  queued: "queued for a worker",
  init: "in init",
  run: "sampling turns",
  evaluate: "being graded",
  success: "success",
  "no-success": "graded, no success",
  cut: "cut (turns, context, length, loop)",
  failed: "failed without a score",
  cancelled: "cancelled or stale",
};

export function cellKind(cell: Pick<Cell, "state" | "stage" | "ending" | "success" | "outcome">): CellKind {
  if (cell.state === "waiting") return "waiting";
  if (cell.state === "queued") return "queued";
  if (cell.state === "active") return cell.stage;
  if (cell.outcome === "failed") return "failed";
  if (cell.outcome === "cancelled" || cell.ending === null) return "cancelled";
  const { kind } = endingRule(cell.ending);
  if (kind === "failed") return "failed";
  if (kind === "cut") return "cut";
  return cell.success ? "success" : "no-success";
}

const ring = <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />;
const glyphs: Record<CellKind, JSX.Element> = {
  waiting: (
    <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.2" strokeDasharray="2 1.6" />
  ),
  queued: ring,
  init: (
    <>
      {ring}
      <path d="M6 6V1.75A4.25 4.25 0 0110.25 6z" fill="currentColor" />
    </>
  ),
  run: (
    <g className="turning">
      {ring}
      <path d="M6 1.75a4.25 4.25 0 010 8.5z" fill="currentColor" />
    </g>
  ),
  evaluate: (
    <>
      {ring}
      <path d="M6 6V1.75A4.25 4.25 0 111.75 6z" fill="currentColor" />
    </>
  ),
  success: <path d="M2 6.5l2.8 2.8L10.2 3" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  "no-success": <path d="M3 6h6" stroke="currentColor" strokeWidth="1.8" />,
  cut: <path d="M2 6h6.2M9 2.5v7" fill="none" stroke="currentColor" strokeWidth="1.6" />,
  failed: <path d="M6 1l5.4 9.6H.6z" fill="var(--status-failed)" />,
  cancelled: <rect x="2" y="2" width="8" height="8" rx="1" fill="currentColor" />,
};

export function CellGlyph({ kind }: { kind: CellKind }): JSX.Element {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" className="shrink-0">
      {glyphs[kind]}
    </svg>
  );
}
