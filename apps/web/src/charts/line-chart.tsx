"use client";
/** One chart with its title, read-out, definition, table view and exports. Empty is a frame with the reason. */
import { type JSX, useEffect, useMemo, useRef, useState } from "react";
import { IconButton } from "../design/button.tsx";
import { Icon } from "../design/icon.tsx";
import { Tooltip } from "../design/tooltip.tsx";
import { toCsv } from "../format/csv.ts";
import { download, downloadText } from "../format/download.ts";
import { formatFraction, formatNumber, missing } from "../format/numbers.ts";
import { nearestPoint } from "./chart-rows.ts";
import type { ChartMark, ChartSeries } from "./chart-series.ts";
import { ChartTable } from "./chart-table.tsx";
import { useCrosshair } from "./crosshair.ts";
import { chartPng } from "./export-png.ts";
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
        <span className="truncate font-medium">{title}</span>
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
          <ExportButtons {...props} layer={() => layer.current} />
        </span>
        <span className="flex-1" />
        <ReadOut series={shown} unit={unit} />
      </figcaption>
      <div className="flex h-4 items-center justify-between text-xs text-g7">
        <span>{unit ? `↑ ${unit === "fraction" ? "%" : unit}` : ""}</span>
        {series.length > directUpTo && <Legend series={series} hidden={hidden} onHidden={setHidden} />}
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

/** The values at the shared cursor, else the last ones; changed outside React. */
function ReadOut({ series, unit }: { series: readonly ChartSeries[]; unit: string }): JSX.Element {
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

function Legend({
  series,
  hidden,
  onHidden,
}: {
  series: readonly ChartSeries[];
  hidden: ReadonlySet<string>;
  onHidden(hidden: ReadonlySet<string>): void;
}): JSX.Element {
  return (
    <span className="flex gap-2 overflow-hidden">
      {series.map((each) => (
        <button
          key={each.key}
          type="button"
          aria-pressed={!hidden.has(each.key)}
          onClick={() => {
            const next = new Set(hidden);
            if (!next.delete(each.key)) next.add(each.key);
            onHidden(next);
          }}
          className="inline-flex max-w-[120px] items-center gap-1 truncate aria-[pressed=false]:opacity-40"
        >
          <svg width="12" height="8" aria-hidden="true" className="shrink-0">
            <line x1="0" x2="12" y1="4" y2="4" stroke={each.colour} strokeWidth="2" strokeDasharray={each.dash} />
          </svg>
          <span className="truncate">{each.label}</span>
        </button>
      ))}
    </span>
  );
}

function ExportButtons({
  title,
  series,
  xTitle = "step",
  fileName,
  layer,
}: LineChartProps & { layer(): HTMLDivElement | null }): JSX.Element {
  const csv = () => {
    const rows = series.flatMap((each) =>
      each.points.map((point) => [
        each.label,
        point.x,
        point.nonFinite ?? point.value,
        point.min,
        point.max,
        point.count,
      ]),
    );
    downloadText(`${fileName}.csv`, "text/csv", toCsv([["series", xTitle, "value", "min", "max", "points"], ...rows]));
  };
  const png = () => {
    const layers = [...(layer()?.querySelectorAll<SVGSVGElement>(":scope > svg, .recharts-surface") ?? [])];
    const own = layers.filter((each) => each.classList.contains("recharts-surface"));
    const over = layers.filter((each) => !each.classList.contains("recharts-surface"));
    if (own.length > 0) void chartPng(title, [...own, ...over]).then((blob) => download(`${fileName}.png`, blob));
  };
  return (
    <>
      <IconButton label={`Download ${title} as CSV`} onClick={csv}>
        <Icon name="download" size={14} />
      </IconButton>
      <IconButton label={`Download ${title} as PNG`} onClick={png}>
        <span className="text-[9px] font-semibold">PNG</span>
      </IconButton>
    </>
  );
}
