import type { JSX } from "react";
import { formatDuration } from "../../format/times.ts";
import { timeTicks, type View } from "./gantt-layout.ts";
import { gutter, margin } from "./gutter.ts";

/** Time since the step's first rollout could begin. */
export function TimeAxis({ view, width }: { view: View; width: number }): JSX.Element {
  const inner = Math.max(10, width - gutter - margin);
  const x = (ms: number) => gutter + ((ms - view.fromMs) / Math.max(1e-9, view.toMs - view.fromMs)) * inner;
  return (
    <svg width={width} height="20" aria-hidden="true" className="block">
      <text x="0" y="14" fontSize="11" fill="var(--g7)">
        since the step began
      </text>
      {timeTicks(view, Math.max(2, Math.floor(inner / 110))).map((tick) => (
        <g key={tick} transform={`translate(${x(tick)} 0)`}>
          <line y1="15" y2="20" stroke="var(--g5)" />
          <text
            y="12"
            fontSize="11"
            fill="var(--g7)"
            className="num"
            textAnchor={x(tick) > gutter + inner - 24 ? "end" : x(tick) < gutter + 12 ? "start" : "middle"}
          >
            {tick === 0 ? "0" : formatDuration(tick)}
          </text>
        </g>
      ))}
    </svg>
  );
}
