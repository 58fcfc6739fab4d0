"use client";
/** Stages as lanes over one time axis with one cursor: active filled, queued hatched on top of it, marks as thin lines. */
import type { Timeline } from "@rolldeck/contracts/api/runs";
import { type JSX, useId, useState } from "react";
import { formatCount, missing } from "../../format/numbers.ts";
import { formatClock, formatDuration, formatUtc } from "../../format/times.ts";

const laneHeight = 84;
const laneGap = 14;
const left = 112;
const right = 12;
const axisHeight = 24;
const markHeight = 22;
const names: Record<Timeline["lanes"][number]["stage"], string> = {
  init: "Init",
  run: "Run",
  evaluate: "Evaluate",
  update: "Update",
};
const markLooks: Record<Timeline["marks"][number]["kind"], { readonly colour: string; readonly shape: string }> = {
  version: { colour: "var(--g6)", shape: "M-3 0L0-4l3 4z" },
  checkpoint: { colour: "var(--status-done)", shape: "M-3-4h6v4h-6z" },
  adopted: { colour: "var(--status-paused)", shape: "M-3-4l6 4M3-4l-6 4" },
  status: { colour: "var(--accent)", shape: "M0-5l3 5h-6z" },
};

function areaPath(
  low: readonly number[],
  high: readonly number[],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  const top = high.map((value, index) => `${index === 0 ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
  const bottom = low.map((value, index) => `L${x(index).toFixed(1)} ${y(value).toFixed(1)}`).toReversed();
  return `${top.join("")}${bottom.join("")}Z`;
}

export function TimelineLanes({ timeline, width }: { timeline: Timeline; width: number }): JSX.Element {
  const hatch = useId();
  const [at, setAt] = useState<number | null>(null);
  const from = Date.parse(timeline.fromAt);
  const span = Math.max(1, Date.parse(timeline.toAt) - from);
  const inner = width - left - right;
  const slices = Math.max(2, timeline.lanes[0]?.active.length ?? 2);
  const x = (index: number) => left + (index / (slices - 1)) * inner;
  const timeX = (time: number) => left + ((time - from) / span) * inner;
  const height = markHeight + timeline.lanes.length * (laneHeight + laneGap) + axisHeight;
  const marks = timeline.marks
    .map((mark) => ({ ...mark, x: timeX(Date.parse(mark.at)) }))
    .filter((mark) => mark.x >= left - 1 && mark.x <= left + inner + 1);
  const tickCount = Math.max(2, Math.floor(inner / 130));
  const near = at === null ? undefined : marks.find((mark) => Math.abs(mark.x - x(at)) < 6);
  return (
    <div>
      <div className="num flex h-5 items-center gap-4 text-sm text-g7">
        {at === null ? (
          <span>
            {formatUtc(timeline.toAt)} at the right edge, counts are means over {formatDuration(timeline.sliceMs)}
          </span>
        ) : (
          <>
            <span className="text-g9">
              {formatClock(new Date(from + (at / (slices - 1)) * span).toISOString()).slice(0, 10)}
            </span>
            <span>means over {formatDuration(timeline.sliceMs)}</span>
            {near && <span>{near.label}</span>}
          </>
        )}
      </div>
      <svg
        width={width}
        height={height}
        role="img"
        aria-label="Rollouts by stage over time"
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const share = (event.clientX - box.left - left) / inner;
          setAt(share < 0 || share > 1 ? null : Math.round(share * (slices - 1)));
        }}
        onPointerLeave={() => setAt(null)}
      >
        {timeline.lanes.map((lane, index) => (
          <Lane
            key={lane.stage}
            lane={lane}
            top={markHeight + index * (laneHeight + laneGap)}
            x={x}
            width={width}
            at={at}
            hatch={hatch}
          />
        ))}
        {marks.map((mark) => (
          <g key={`${mark.at}${mark.label}`}>
            <title>{`${mark.label}, ${formatUtc(mark.at)}`}</title>
            <line
              x1={mark.x}
              x2={mark.x}
              y1={markHeight - 4}
              y2={height - axisHeight}
              stroke={markLooks[mark.kind].colour}
              strokeWidth="1"
              opacity={mark.kind === "version" ? 0.25 : 0.6}
            />
            <path
              d={markLooks[mark.kind].shape}
              transform={`translate(${mark.x} ${markHeight - 6})`}
              fill={markLooks[mark.kind].colour}
              stroke={markLooks[mark.kind].colour}
            />
          </g>
        ))}
        {Array.from({ length: tickCount + 1 }, (_, index) => {
          const tick = from + (index / tickCount) * span;
          return (
            <g key={tick} transform={`translate(${timeX(tick)} ${height - axisHeight})`}>
              <line y2="4" stroke="var(--g5)" />
              <text
                y="17"
                fontSize="11"
                fill="var(--g7)"
                textAnchor={index === tickCount ? "end" : index === 0 ? "start" : "middle"}
                className="num"
              >
                {formatClock(new Date(tick).toISOString()).slice(0, 8)}
              </text>
            </g>
          );
        })}
        {at !== null && (
          <line x1={x(at)} x2={x(at)} y1={markHeight - 4} y2={height - axisHeight} stroke="var(--g8)" strokeWidth="1" />
        )}
      </svg>
      <p className="mt-1 flex gap-4 text-xs text-g7">
        {(["version", "checkpoint", "adopted", "status"] as const).map((kind) => (
          <span key={kind} className="inline-flex items-center gap-1">
            <svg width="10" height="8" viewBox="-5 -6 10 8" aria-hidden="true">
              <path d={markLooks[kind].shape} fill={markLooks[kind].colour} stroke={markLooks[kind].colour} />
            </svg>
            {{ version: "new version", checkpoint: "checkpoint", adopted: "model adopted", status: "run status" }[kind]}
          </span>
        ))}
        <span className="flex-1" />
        <span>UTC</span>
      </p>
    </div>
  );
}

function Lane({
  lane,
  top,
  x,
  width,
  at,
  hatch,
}: {
  lane: Timeline["lanes"][number];
  top: number;
  x(index: number): number;
  width: number;
  at: number | null;
  hatch: string;
}): JSX.Element {
  const totals = lane.active.map((count, index) => count + (lane.queued[index] ?? 0));
  const most = Math.max(1, ...totals);
  const bottom = top + laneHeight;
  const y = (value: number) => bottom - (value / most) * (laneHeight - 10);
  const colour = `var(--stage-${lane.stage})`;
  const zeros = lane.active.map(() => 0);
  const index = at ?? lane.active.length - 1;
  return (
    <g>
      <defs>
        <pattern
          id={`${hatch}${lane.stage}`}
          width="5"
          height="5"
          patternUnits="userSpaceOnUse"
          patternTransform="rotate(45)"
        >
          <line y2="5" stroke={colour} strokeWidth="1.6" />
        </pattern>
      </defs>
      <line x1={left} x2={width - right} y1={bottom} y2={bottom} stroke="var(--g4)" />
      <line x1={left} x2={width - right} y1={y(most)} y2={y(most)} stroke="var(--g3)" />
      <path d={areaPath(lane.active, totals, x, y)} fill={`url(#${hatch}${lane.stage})`} opacity="0.75" />
      <path d={areaPath(zeros, lane.active, x, y)} fill={colour} opacity="0.72" />
      <text x="0" y={top + 18} fontSize="13" fontWeight="600" fill="var(--g9)">
        {names[lane.stage]}
      </text>
      <text x="0" y={top + 38} fontSize="11" fill="var(--g8)" className="num">
        {shown(lane.active[index])} active
      </text>
      <text x="0" y={top + 54} fontSize="11" fill="var(--g7)" className="num">
        {shown(lane.queued[index])} queued
      </text>
      <text x={left - 6} y={y(most) + 4} fontSize="11" fill="var(--g7)" textAnchor="end" className="num">
        {shown(most)}
      </text>
    </g>
  );
}

/** Mean counts need one digit after the point at most. */
const shown = (value: number | undefined): string =>
  value === undefined ? missing : value >= 100 ? formatCount(value) : String(Math.round(value * 10) / 10);
