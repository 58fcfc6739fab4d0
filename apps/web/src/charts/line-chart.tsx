"use client";
/** One chart with its title, read-out, definition, table view and exports. Empty is a frame with the reason. */
import { type JSX, useMemo, useRef, useState } from "react";
import { IconButton } from "../design/button.tsx";
import { Icon } from "../design/icon.tsx";
import { Tooltip } from "../design/tooltip.tsx";
import { formatNumber } from "../format/numbers.ts";
import { ChartExports } from "./chart-exports.tsx";
import { ChartLegend } from "./chart-legend.tsx";
import { ChartReadOut } from "./chart-read-out.tsx";
import type { ChartMark, ChartSeries } from "./chart-series.ts";
import { ChartTable } from "./chart-table.tsx";
import { Plot } from "./plot.tsx";
import { linearScale, logScale } from "./scale.ts";
import { useWidth } from "./use-width.ts";

const directUpTo = 5;

export interface LineChartProps {
  readonly title: string;
  /** Unit of the values (`fraction`, `tokens/s`, …), shown with every number. */
  readonly unit: string;
  readonly definition: string;
  readonly series: readonly ChartSeries[];
  readonly marks?: readonly ChartMark[];
  readonly smoothing?: number;
  readonly log?: boolean;
  readonly height?: number;
  readonly xTitle?: string;
  readonly xDomain?: readonly [number, number] | null;
  /** Why there is nothing yet. */
  readonly empty: string;
  readonly onZoom?: (from: number, to: number) => void;
  /** Names in the file of an export. */
  readonly fileName: string;
}

const noMarks: readonly ChartMark[] = [];

export function LineChart(props: LineChartProps): JSX.Element {
  const { title, unit, series, height = 168, smoothing = 0, log = false, xTitle = "step" } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [table, setTable] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const layer = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => series.filter((each) => !hidden.has(each.key)), [series, hidden]);
  const drawn = shown.some((each) => each.points.length > 0);
  const scale = useMemo(() => {
    const values = shown.flatMap((each) =>
      each.points.flatMap((point) => [point.min, point.max, point.value]).filter((value) => value !== null),
    );
    return (log ? logScale(values) : null) ?? linearScale(values);
  }, [shown, log]);
  const dataDomain = useMemo<[number, number]>(() => {
    const xs = shown.flatMap((each) => each.points.map((point) => point.x));
    const low = xs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    const high = xs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    return low > high ? [0, 1] : low === high ? [low, low + 1] : [low, high];
  }, [shown]);
  const direct = series.length > 1 && series.length <= directUpTo;

  return (
    <figure aria-label={`${title}${unit ? `, ${unit}` : ""}`} className="group/chart m-0 flex min-w-0 flex-col">
      <figcaption className="flex h-6 items-center gap-1">
        <span title={title} className="truncate font-medium">
          {title}
        </span>
        <Tooltip content={props.definition}>
          <button type="button" aria-label={`What ${title} means`} className="text-g6 hover:text-g9">
            <Icon name="info" size={14} />
          </button>
        </Tooltip>
        {log && !scale.log && drawn && <span className="text-xs text-g7">log n/a</span>}
        <span className="flex opacity-0 transition-opacity duration-100 group-focus-within/chart:opacity-100 group-hover/chart:opacity-100">
          <IconButton label={table ? "Show the chart" : "Show as a table"} onClick={() => setTable(!table)}>
            <Icon name={table ? "chart" : "table"} size={14} />
          </IconButton>
          <ChartExports
            title={title}
            series={series}
            xTitle={xTitle}
            fileName={props.fileName}
            layer={() => layer.current}
          />
        </span>
        <span className="flex-1" />
        {!direct && <ChartReadOut series={shown} unit={unit} />}
      </figcaption>
      <div className="flex h-4 items-center justify-between text-xs text-g7">
        <span>{unit ? `↑ ${unit === "fraction" ? "%" : unit}` : ""}</span>
        {/* Values of several lines leave no room for a title beside them. */}
        {direct && <ChartReadOut series={shown} unit={unit} />}
        {series.length > directUpTo && <ChartLegend series={series} hidden={hidden} onHidden={setHidden} />}
      </div>
      <div ref={box} style={{ height }}>
        {table ? (
          <ChartTable series={shown} unit={unit} xTitle={xTitle} height={height} />
        ) : !drawn ? (
          <div
            className="flex items-center justify-center rounded-md border border-dashed border-g4 px-6 text-center text-sm text-g7"
            style={{ height: height - 4 }}
          >
            {props.empty}
          </div>
        ) : (
          width > 0 && (
            <Plot
              series={shown}
              marks={props.marks ?? noMarks}
              smoothing={smoothing}
              scale={scale}
              xDomain={props.xDomain ?? dataDomain}
              width={width}
              height={height}
              direct={direct}
              formatTick={unit === "fraction" ? formatPercentTick : formatTick}
              onZoom={props.onZoom}
              layer={layer}
            />
          )
        )}
      </div>
      {drawn && !table && <div className="h-3 pr-3 text-right text-xs leading-3 text-g7">{xTitle} →</div>}
    </figure>
  );
}

const trimZeros = (text: string): string => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
const formatTick = (value: number): string => trimZeros(formatNumber(value));
const formatPercentTick = (value: number): string => trimZeros(formatNumber(value * 100));
