"use client";
import { type JSX, useEffect, useRef } from "react";
import { formatFraction, formatNumber, missing } from "../format/numbers.ts";
import { nearestPoint } from "./chart-rows.ts";
import type { ChartSeries } from "./chart-series.ts";
import { useCrosshair } from "./crosshair.ts";

/** The values at the shared cursor, else the last ones; changed outside React. */
export function ChartReadOut({ series, unit }: { series: readonly ChartSeries[]; unit: string }): JSX.Element {
  const crosshair = useCrosshair();
  const element = useRef<HTMLSpanElement>(null);
  const write = useRef((_x: number | null) => {});
  write.current = (x) => {
    const spans = element.current?.querySelectorAll("[data-value]") ?? [];
    series.slice(0, 3).forEach((each, index) => {
      const point = x === null ? each.points.at(-1) : nearestPoint(each.points, x);
      const hit = point && (x === null || point.x === x) ? point : null;
      const span = spans[index];
      if (span)
        span.textContent =
          hit?.nonFinite ??
          (hit ? (unit === "fraction" ? formatFraction(hit.value) : formatNumber(hit.value)) : missing);
    });
    const step = element.current?.querySelector("[data-step]");
    if (step) step.textContent = x === null ? "" : `@ ${x}`;
  };
  useEffect(() => {
    write.current(crosshair.x);
    return crosshair.listen((x) => write.current(x));
  });
  return (
    <span ref={element} className="num flex items-center gap-2 text-sm whitespace-nowrap">
      <span data-step className="text-xs text-g7" />
      {series.slice(0, 3).map((each) => (
        <span key={each.key} className="inline-flex items-center gap-1" title={each.label}>
          {series.length > 1 && (
            <svg width="10" height="8" aria-hidden="true">
              <line x1="0" x2="10" y1="4" y2="4" stroke={each.colour} strokeWidth="2" strokeDasharray={each.dash} />
            </svg>
          )}
          <span data-value />
        </span>
      ))}
    </span>
  );
}
