/** What a plot is given, and the margins that recharts and the overlay agree on to the pixel. */
import type { RefObject } from "react";
import type { ChartMark, ChartSeries } from "./chart-series.ts";
import type { Scale } from "./scale.ts";

export const plotMargin = { top: 8, right: 12, bottom: 20, left: 44 } as const;

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
