"use client";
/** Lanes of a step's rollouts on a canvas that stands still while they scroll under it. */
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { type JSX, type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useCrosshair } from "../../charts/crosshair.ts";
import { useThemeName } from "../../design/use-theme-name.ts";
import { type GanttLayout, laneAt } from "./gantt-layout.ts";
import { gutter, margin } from "./gutter.ts";
import { paintGantt, paletteOf } from "./paint-gantt.ts";
import { paintNames } from "./paint-names.ts";
import type { ViewControl } from "./use-view.ts";

const mostHeight = 440;

export interface GanttProps {
  readonly schedule: Schedule;
  readonly layout: GanttLayout;
  readonly control: ViewControl;
  readonly width: number;
  /** Place in `layout.order`. */
  readonly chosen: number | null;
  onChoose(lane: number | null): void;
  onOpen(lane: number): void;
}

export function GanttLanes(props: GanttProps): JSX.Element {
  const { schedule, layout, control, width, chosen } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const bars = useRef<HTMLCanvasElement>(null);
  const names = useRef<HTMLCanvasElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const theme = useThemeName();
  const height = Math.max(40, Math.min(mostHeight, layout.height));
  const inner = Math.max(10, width - gutter - margin);
  const palette = useMemo(() => (theme === "" ? null : paletteOf(document.documentElement)), [theme]);
  const { view } = control;
  useEffect(() => {
    if (!palette || !bars.current || !names.current) return;
    const picture = { schedule, layout, view, scrollTop, width: inner, height, chosen, palette };
    paintGantt(bars.current, picture);
    paintNames(names.current, { ...picture, width: gutter });
  }, [schedule, layout, view, scrollTop, inner, height, chosen, palette]);
  useWheel(scroller, inner, control);
  const pointer = usePointer(props, scroller, inner);
  return (
    <div
      ref={scroller}
      role="application"
      aria-roledescription="schedule of rollouts"
      aria-label={`${layout.order.length} rollouts, one lane each. Up and down choose a lane, left and right move in time, plus and minus zoom, Enter opens the rollout.`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move in it
      tabIndex={0}
      data-testid="gantt"
      className="relative overflow-x-hidden overflow-y-auto"
      style={{ height }}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
      onKeyDown={(event) => onKey(event, props, scroller.current)}
      {...pointer}
    >
      <div style={{ height: Math.max(height, layout.height) }}>
        <div className="sticky top-0 flex" style={{ height, width }}>
          <canvas ref={names} className="shrink-0" style={{ width: gutter, height }} />
          <canvas ref={bars} className="shrink-0" style={{ width: inner, height }} />
        </div>
      </div>
    </div>
  );
}

/** Moves in time as far as a tenth of what is shown; the chosen lane is scrolled into sight. */
function onKey(event: KeyboardEvent, props: GanttProps, scroller: HTMLDivElement | null): void {
  const { control, layout, chosen, onChoose, onOpen } = props;
  const wide = control.view.toMs - control.view.fromMs;
  const choose = (lane: number) => {
    const next = Math.max(0, Math.min(layout.order.length - 1, lane));
    onChoose(next);
    if (!scroller) return;
    const top = layout.tops[next] ?? 0;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + layout.laneHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top + layout.laneHeight - scroller.clientHeight;
  };
  const actions = new Map<string, () => void>([
    ["ArrowDown", () => choose(chosen === null ? 0 : chosen + 1)],
    ["ArrowUp", () => choose(chosen === null ? 0 : chosen - 1)],
    ["Home", () => choose(0)],
    ["End", () => choose(layout.order.length - 1)],
    ["ArrowLeft", () => control.panBy(-wide / 10)],
    ["ArrowRight", () => control.panBy(wide / 10)],
    ["Enter", () => chosen !== null && onOpen(chosen)],
  ]);
  const action = actions.get(event.key);
  if (!action || event.metaKey || event.ctrlKey || event.altKey) return;
  event.preventDefault();
  action();
}

/** Ctrl or ⌘ with the wheel zooms, sideways pans, and up and down is the page's own scrolling. */
function useWheel(element: { readonly current: HTMLDivElement | null }, inner: number, control: ViewControl): void {
  const latest = useRef({ inner, control });
  latest.current = { inner, control };
  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const onWheel = (event: WheelEvent) => {
      const { control: now, inner: wide } = latest.current;
      const perPixel = (now.view.toMs - now.view.fromMs) / wide;
      if (event.ctrlKey || event.metaKey) {
        const x = event.clientX - target.getBoundingClientRect().left - gutter;
        now.zoomBy(1.0015 ** event.deltaY, now.view.fromMs + x * perPixel);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        now.panBy((event.deltaX || event.deltaY) * perPixel);
      else return;
      event.preventDefault();
    };
    target.addEventListener("wheel", onWheel, { passive: false });
    return () => target.removeEventListener("wheel", onWheel);
  }, [element]);
}

/** Pointing chooses, dragging pans, a click opens. */
function usePointer(props: GanttProps, scroller: { readonly current: HTMLDivElement | null }, inner: number) {
  const crosshair = useCrosshair();
  const drag = useRef<{ x: number; moved: number } | null>(null);
  const { control, layout, onChoose, onOpen } = props;
  const place = (event: PointerEvent) => {
    const box = scroller.current?.getBoundingClientRect();
    const x = event.clientX - (box?.left ?? 0) - gutter;
    const y = event.clientY - (box?.top ?? 0) + (scroller.current?.scrollTop ?? 0);
    return { x, lane: laneAt(layout, y) };
  };
  const perPixel = (control.view.toMs - control.view.fromMs) / inner;
  return {
    onPointerMove: (event: PointerEvent) => {
      const { x, lane } = place(event);
      if (drag.current && event.buttons === 1) {
        control.panBy((drag.current.x - event.clientX) * perPixel);
        drag.current = { x: event.clientX, moved: drag.current.moved + Math.abs(drag.current.x - event.clientX) };
      }
      crosshair.set(x < 0 || x > inner ? null : control.view.fromMs + x * perPixel);
      if (lane !== props.chosen) onChoose(lane);
    },
    onPointerLeave: () => crosshair.set(null),
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0) drag.current = { x: event.clientX, moved: 0 };
    },
    onPointerUp: (event: PointerEvent) => {
      const still = drag.current !== null && drag.current.moved < 4;
      drag.current = null;
      const { lane, x } = place(event);
      if (still && lane !== null && x <= inner) onOpen(lane);
    },
  };
}
