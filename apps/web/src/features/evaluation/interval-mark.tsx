/** A fraction with its 95 % interval: a dot with whiskers on a line from 0 to 1, and the same in figures. */
import type { Estimate } from "@rolldeck/contracts/api/evaluation";
import type { JSX } from "react";
import { missing, thinSpace } from "../../format/numbers.ts";

const width = 160;
const clamp = (value: number): number => Math.min(1, Math.max(0, value));

export function intervalText(estimate: Estimate | null): string {
  if (estimate === null) return missing;
  const value = estimate.value.toFixed(3);
  return estimate.halfWidth === null ? value : `${value} ± ${estimate.halfWidth.toFixed(3)}`;
}

/** The same of a fraction, as everywhere in per cent. */
export function percentText(estimate: Estimate | null): string {
  if (estimate === null) return missing;
  const value = (estimate.value * 100).toFixed(1);
  const width = estimate.halfWidth === null ? "" : ` ± ${(estimate.halfWidth * 100).toFixed(1)}`;
  return `${value}${width}${thinSpace}%`;
}

export function IntervalMark({ estimate }: { estimate: Estimate | null }): JSX.Element {
  if (estimate === null) return <span className="text-sm text-g7">{missing}</span>;
  const { value, halfWidth } = estimate;
  const at = (x: number) => 4 + clamp(x) * (width - 8);
  return (
    <span className="flex items-center gap-3">
      <svg width={width} height={16} aria-hidden="true" className="shrink-0">
        <line x1={4} x2={width - 4} y1={8} y2={8} stroke="var(--g4)" />
        {halfWidth !== null && (
          <line
            x1={at(value - halfWidth)}
            x2={at(value + halfWidth)}
            y1={8}
            y2={8}
            stroke="var(--g7)"
            strokeWidth={3}
          />
        )}
        <circle cx={at(value)} cy={8} r={4} fill="var(--g9)" />
      </svg>
      <span className="num text-sm whitespace-nowrap">{percentText(estimate)}</span>
    </span>
  );
}
