import type { JSX } from "react";

const entries = [
  { label: "init", style: { background: "var(--stage-init)" } },
  { label: "run", style: { background: "var(--stage-run)" } },
  { label: "evaluate", style: { background: "var(--stage-evaluate)" } },
] as const;

export function GanttLegend(): JSX.Element {
  return (
    <p className="flex flex-wrap gap-x-4 text-xs text-g7">
      {entries.map(({ label, style }) => (
        <span key={label} className="inline-flex items-center gap-1">
          <span aria-hidden="true" className="h-2 w-4 rounded-[1px]" style={style} />
          {label}
        </span>
      ))}
      <span className="inline-flex items-center gap-1">
        <span
          aria-hidden="true"
          className="waiting-fill h-2 w-4 rounded-[1px]"
          style={{ ["--fill" as string]: "var(--g6)" }}
        />
        waits for its next stage
      </span>
      <span className="inline-flex items-center gap-1">
        <svg width="16" height="8" aria-hidden="true">
          <rect width="16" height="8" fill="var(--stage-run)" opacity="0.35" />
          <path d="M0 4h16" stroke="var(--status-failed)" />
          <path d="M9 0l6 8M15 0l-6 8" stroke="var(--status-failed)" strokeWidth="1.5" />
        </svg>
        lost attempt, work done again
      </span>
    </p>
  );
}
