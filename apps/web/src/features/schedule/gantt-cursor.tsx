"use client";
/** The one cursor of lanes and strips, and what lies under it. */
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { type JSX, useEffect, useRef, useState } from "react";
import { useCrosshair } from "../../charts/crosshair.ts";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import type { GanttLayout, View } from "./gantt-layout.ts";
import { gutter, margin } from "./gutter.ts";
import { laneText } from "./lane-text.ts";
import { laneWords } from "./use-strips.tsx";

/** A hairline over all that shares the axis. */
export function CursorLine({ view, width }: { view: View; width: number }): JSX.Element {
  const crosshair = useCrosshair();
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const inner = Math.max(10, width - gutter - margin);
    const move = (ms: number | null) => {
      if (!line.current) return;
      const share = ms === null ? -1 : (ms - view.fromMs) / Math.max(1e-9, view.toMs - view.fromMs);
      line.current.style.display = share < 0 || share > 1 ? "none" : "";
      line.current.style.left = `${gutter + share * inner}px`;
    };
    move(crosshair.x);
    return crosshair.listen(move);
  }, [crosshair, view, width]);
  return <div ref={line} aria-hidden="true" className="pointer-events-none absolute inset-y-0 w-px bg-g8" />;
}

export function CursorReadOut({
  schedule,
  layout,
  chosen,
}: {
  schedule: Schedule;
  layout: GanttLayout;
  chosen: number | null;
}): JSX.Element {
  const crosshair = useCrosshair();
  const [ms, setMs] = useState<number | null>(null);
  useEffect(() => crosshair.listen(setMs), [crosshair]);
  const slice = ms === null ? -1 : Math.floor(ms / Math.max(1e-9, schedule.use.sliceMs));
  const rollout = chosen === null ? undefined : layout.order[chosen];
  return (
    <div
      role="status"
      className="figures flex h-5 items-center gap-3 overflow-hidden text-sm whitespace-nowrap text-g7"
    >
      {ms !== null && <span className="text-g9">{formatDuration(ms)}</span>}
      {ms !== null &&
        schedule.use.lanes.map((lane) => (
          <span key={lane.lane}>
            {laneWords[lane.lane].label.toLowerCase()} {formatNumber(lane.mean[slice] ?? 0)}
            {lane.size !== null && `/${formatCount(lane.size)}`}
          </span>
        ))}
      {rollout !== undefined && <span className="truncate text-g9">{laneText(schedule, layout, rollout, ms)}</span>}
      {ms === null && rollout === undefined && (
        <span className="truncate">
          Point at a lane to read it; click or Enter opens its rollout. Ctrl with the wheel zooms, dragging pans.
        </span>
      )}
    </div>
  );
}
