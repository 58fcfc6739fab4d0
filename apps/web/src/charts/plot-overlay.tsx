"use client";
/** Over the drawn chart: marks, points that are no numbers, the zoom brush, and the shared cursor, moved outside React. */
import { type JSX, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { nearestPoint } from "./chart-rows.ts";
import { useCrosshair } from "./crosshair.ts";
import { type PlotProps, plotMargin } from "./plot-geometry.ts";

const dotsUpTo = 8;

interface OverlayProps extends PlotProps {
  readonly place: { x(x: number): number; y(value: number): number };
  readonly inner: { readonly width: number; readonly height: number };
}

export function PlotOverlay({
  series,
  marks,
  xDomain,
  width,
  height,
  place,
  inner,
  onZoom,
  scale,
}: OverlayProps): JSX.Element {
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
