"use client";
/**
 * The drawn part of a chart: recharts for axes, bands and lines; an overlay of ours for labels, marks, non-finite points
 * and the cursor. The geometry is fixed here so that both agree to the pixel.
 */
import { type JSX, memo, useMemo } from "react";
import { Area, CartesianGrid, ComposedChart, Line, XAxis, YAxis } from "recharts";
import { formatCount } from "../format/numbers.ts";
import { bandColumn, chartRows, rawColumn, smoothColumn } from "./chart-rows.ts";
import { endLabels } from "./end-labels.ts";
import { type PlotProps, plotMargin } from "./plot-geometry.ts";
import { PlotOverlay } from "./plot-overlay.tsx";
import { stepTicks } from "./scale.ts";

const labelWidth = 76;

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
      <PlotOverlay {...props} place={place} inner={inner} />
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
