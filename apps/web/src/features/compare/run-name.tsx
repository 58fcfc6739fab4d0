import Link from "next/link";
import type { JSX } from "react";
import type { RunStroke } from "../../charts/run-colour.ts";
import type { Compared } from "./compared.ts";

/** The line a run is drawn with. */
export function StrokeMark({ stroke }: { stroke: RunStroke | undefined }): JSX.Element {
  return (
    <svg width="16" height="8" aria-hidden="true" className="shrink-0">
      <line
        x1="0"
        x2="16"
        y1="4"
        y2="4"
        stroke={stroke?.colour ?? "var(--g6)"}
        strokeWidth="2"
        strokeDasharray={stroke?.dash}
      />
    </svg>
  );
}

export function RunName({
  runId,
  labels,
  strokes,
}: { runId: string } & Pick<Compared, "labels" | "strokes">): JSX.Element {
  return (
    <span className="inline-flex min-w-0 items-center gap-1.5">
      <StrokeMark stroke={strokes.get(runId)} />
      <Link href={`/runs/${runId}`} className="truncate hover:text-accent-text hover:underline">
        {labels.get(runId) ?? runId}
      </Link>
    </span>
  );
}
