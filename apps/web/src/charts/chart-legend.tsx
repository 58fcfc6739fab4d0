"use client";
import type { JSX } from "react";
import type { ChartSeries } from "./chart-series.ts";

/** Names of more series than labels fit; a click hides or shows one. */
export function ChartLegend({
  series,
  hidden,
  onHidden,
}: {
  series: readonly ChartSeries[];
  hidden: ReadonlySet<string>;
  onHidden(hidden: ReadonlySet<string>): void;
}): JSX.Element {
  return (
    <span className="flex gap-2 overflow-hidden">
      {series.map((each) => (
        <button
          key={each.key}
          type="button"
          aria-pressed={!hidden.has(each.key)}
          onClick={() => {
            const next = new Set(hidden);
            if (!next.delete(each.key)) next.add(each.key);
            onHidden(next);
          }}
          className="inline-flex max-w-[120px] items-center gap-1 truncate aria-[pressed=false]:opacity-40"
        >
          <svg width="12" height="8" aria-hidden="true" className="shrink-0">
            <line x1="0" x2="12" y1="4" y2="4" stroke={each.colour} strokeWidth="2" strokeDasharray={each.dash} />
          </svg>
          <span className="truncate">{each.label}</span>
        </button>
      ))}
    </span>
  );
}
