"use client";
/**
 * The drawn part of a chart: recharts for axes, bands and lines; an overlay of ours for labels, marks, non-finite points
 * and the cursor. The geometry is fixed here so that both agree to the pixel.
 */
import { type JSX, memo, type PointerEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { Area, CartesianGrid, ComposedChart, Line, XAxis, YAxis } from "recharts";
import { formatCount } from "../format/numbers.ts";
import { bandColumn, chartRows, nearestPoint, rawColumn, smoothColumn } from "./chart-rows.ts";
import type { ChartMark, ChartSeries } from "./chart-series.ts";
import { useCrosshair } from "./crosshair.ts";
import { endLabels } from "./end-labels.ts";
import { type Scale, stepTicks } from "./scale.ts";

export const plotMargin = { top: 8, right: 12, bottom: 20, left: 44 } as const;
const labelWidth = 76;
const dotsUpTo = 8;

export interface PlotProps {
  readonly series: readonly ChartSeries[];
  readonly marks: readonly ChartMark[];
  readonly smoothing: number;
  readonly scale: Scale;
  readonly xDomain: readonly [number, number];
  readonly width: number;
  readonly height: number;
  readonly direct: boolean;
  readonly formatTick: (value: number) => string;
  readonly onZoom?: (from: number, to: number) => void;
  readonly layer: RefObject<HTMLDivElement | null>;
}

export function Plot(props: PlotProps): JSX.Element {
  const { series, scale, xDomain, width, height, direct } = props;
  const right = plotMargin.right + (direct ? labelWidth : 0);
  const inner = {
    width: Math.max(1, width - plotMargin.left - right),
    height: height - plotMargin.top - plotMargin.bottom,
  };
  const span = xDomain[1] - xDomain[0] || 1;
  const place = {
    x: (x: number) => plotMargin.left + ((x - xDomain[0]) / span) * inner.width,
    y: (value: number) => plotMargin.top + (1 - scale.position(value)) * inner.height,
  };
  return (
    <div ref={props.layer} className="relative" style={{ width, height }}>
      <Drawn {...props} right={right} />
      <Overlay {...props} place={place} inner={inner} />
      {direct &&
        endLabels(
          series.map((each) => {
            const last = each.points.findLast((point) => point.value !== null);
            return last?.value === null || last === undefined ? null : place.y(last.value);
          }),
          plotMargin.top + 6,
          height - plotMargin.bottom,
        ).map((y, index) => {
          const each = series[index];
          return y === null || !each ? null : (
            <span
              key={each.key}
              title={each.label}
              className="absolute truncate text-xs leading-[14px] font-medium"
              style={{
                left: width - right + 6,
                top: y - 7,
                maxWidth: labelWidth + 4,
                color: `color-mix(in srgb, ${each.colour} 78%, var(--g9))`,
              }}
            >
              {each.label}
            </span>
          );
        })}
    </div>
  );
}

const axisText = { fontSize: 11, fill: "var(--g7)", fontFamily: "var(--font-sans)" } as const;

const Drawn = memo(function Drawn({
  series,
  smoothing,
  scale,
  xDomain,
  width,
  height,
  right,
  formatTick,
}: PlotProps & { right: number }): JSX.Element {
  const rows = useMemo(() => chartRows(series, smoothing), [series, smoothing]);
  return (
    <ComposedChart
      width={width}
      height={height}
      data={rows}
      margin={{ ...plotMargin, left: 0, right, bottom: 0 }}
      accessibilityLayer={false}
    >
      <CartesianGrid vertical={false} stroke="var(--g3)" />
      <XAxis
        dataKey="x"
        type="number"
        domain={[...xDomain]}
        ticks={stepTicks(xDomain, Math.max(2, Math.min(6, Math.floor(width / 80))))}
        allowDataOverflow
        height={plotMargin.bottom}
        tickSize={4}
        tickMargin={3}
        tickLine={{ stroke: "var(--g5)" }}
        axisLine={{ stroke: "var(--g5)" }}
        tick={axisText}
        tickFormatter={formatCount}
        interval="preserveStartEnd"
      />
      <YAxis
        type="number"
        scale={scale.log ? "log" : "linear"}
        domain={[...scale.domain]}
        ticks={[...scale.ticks]}
        allowDataOverflow
        width={plotMargin.left}
        tickSize={0}
        tickMargin={6}
        axisLine={false}
        tickLine={false}
        tick={axisText}
        tickFormatter={formatTick}
        interval={0}
      />
      {series.map((each, index) => (
        <Area
          key={`band ${each.key}`}
          dataKey={bandColumn(index)}
          type="linear"
          stroke="none"
          fill={each.colour}
          fillOpacity={0.16}
          isAnimationActive={false}
          activeDot={false}
        />
      ))}
      {smoothing > 0 &&
        series.map((each, index) => (
          <Line
            key={`raw ${each.key}`}
            dataKey={rawColumn(index)}
            type="linear"
            stroke={each.colour}
            strokeOpacity={0.25}
            strokeWidth={1.5}
            dot={false}
            activeDot={false}
            isAnimationActive={false}
          />
        ))}
      {series.map((each, index) => (
        <Line
          key={each.key}
          dataKey={smoothColumn(index)}
          type="linear"
          stroke={each.colour}
          strokeWidth={1.5}
          strokeDasharray={each.dash}
          dot={false}
          activeDot={false}
          isAnimationActive={false}
        />
      ))}
    </ComposedChart>
  );
});

interface OverlayProps extends PlotProps {
  readonly place: { x(x: number): number; y(value: number): number };
  readonly inner: { readonly width: number; readonly height: number };
}

function Overlay({ series, marks, xDomain, width, height, place, inner, onZoom, scale }: OverlayProps): JSX.Element {
  const crosshair = useCrosshair();
  const cursor = useRef<SVGGElement>(null);
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number } | null>(null);
  const bottom = height - plotMargin.bottom;

  const latest = useRef((_x: number | null) => {});
  latest.current = (x) => {
    const group = cursor.current;
    if (!group) return;
    const visible = x !== null && x >= xDomain[0] && x <= xDomain[1];
    group.style.display = visible ? "" : "none";
    if (!visible) return;
    group.querySelector("line")?.setAttribute("transform", `translate(${place.x(x)} 0)`);
    group.querySelectorAll("circle").forEach((dot, index) => {
      const point = nearestPoint(series[index]?.points ?? [], x);
      const shown = point?.value !== null && point !== null && point.x === x;
      dot.style.display = shown ? "" : "none";
      if (!shown || point.value === null) return;
      dot.setAttribute("cx", String(place.x(point.x)));
      dot.setAttribute("cy", String(place.y(point.value)));
    });
  };
  useEffect(() => crosshair.listen((x) => latest.current(x)), [crosshair]);

  const xs = useMemo(
    () => [...new Set(series.flatMap((each) => each.points.map((point) => point.x)))].map((x) => ({ x })),
    [series],
  );
  const at = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - plotMargin.left) / inner.width;
    return xDomain[0] + Math.min(1, Math.max(0, share)) * (xDomain[1] - xDomain[0]);
  };
  return (
    <svg
      aria-hidden="true"
      width={width}
      height={height}
      className="absolute inset-0"
      style={{ touchAction: "pan-y" }}
      onPointerMove={(event) => {
        const x = at(event);
        crosshair.set(nearestPoint(xs, x)?.x ?? null);
        if (drag) setDrag({ ...drag, to: x });
      }}
      onPointerLeave={() => crosshair.set(null)}
      onPointerDown={(event) => {
        if (!onZoom || event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: at(event), to: at(event) });
      }}
      onPointerUp={() => {
        if (drag && onZoom && Math.abs(place.x(drag.from) - place.x(drag.to)) > 6)
          onZoom(Math.round(Math.min(drag.from, drag.to)), Math.round(Math.max(drag.from, drag.to)));
        setDrag(null);
      }}
    >
      {marks
        .filter((mark) => mark.x >= xDomain[0] && mark.x <= xDomain[1])
        .map((mark) => (
          <g key={`${mark.kind}${mark.x}`} transform={`translate(${place.x(mark.x)} 0)`}>
            <title>{mark.label}</title>
            <line y1={bottom - 5} y2={bottom} stroke="var(--g7)" strokeWidth="1" />
          </g>
        ))}
      {series.map((each) => (
        <g key={each.key} stroke={each.colour} fill={each.colour}>
          {each.points.length <= dotsUpTo &&
            each.points.map(
              (point) =>
                point.value !== null &&
                (!scale.log || point.value > 0) && (
                  <circle key={point.x} cx={place.x(point.x)} cy={place.y(point.value)} r="2.5" stroke="none" />
                ),
            )}
          {each.points.map(
            (point) =>
              point.nonFinite && (
                <NonFinite key={point.x} kind={point.nonFinite} x={place.x(point.x)} bottom={bottom} />
              ),
          )}
        </g>
      ))}
      {drag && (
        <rect
          x={Math.min(place.x(drag.from), place.x(drag.to))}
          y={plotMargin.top}
          width={Math.abs(place.x(drag.from) - place.x(drag.to))}
          height={inner.height}
          fill="var(--accent)"
          opacity="0.14"
        />
      )}
      <g ref={cursor} style={{ display: "none" }}>
        <line y1={plotMargin.top} y2={bottom} stroke="var(--g6)" strokeWidth="1" />
        {series.map((each) => (
          <circle key={each.key} r="3" fill={each.colour} stroke="var(--g0)" strokeWidth="1.5" />
        ))}
      </g>
    </svg>
  );
}

/** NaN as a cross on the floor, +∞ as a triangle at the ceiling, −∞ as one at the floor: three kinds, kept apart. */
function NonFinite({
  kind,
  x,
  bottom,
}: {
  kind: "NaN" | "Infinity" | "-Infinity";
  x: number;
  bottom: number;
}): JSX.Element {
  const y = kind === "Infinity" ? plotMargin.top + 4 : bottom - 5;
  const paths = { NaN: "M-3-3l6 6M3-3l-6 6", Infinity: "M-4 3L0-4l4 7z", "-Infinity": "M-4-3L0 4l4-7z" } as const;
  return (
    <path d={paths[kind]} transform={`translate(${x} ${y})`} strokeWidth="1.5">
      <title>{kind === "NaN" ? "NaN" : kind === "Infinity" ? "+∞" : "−∞"} at this step</title>
    </path>
  );
}
