/**
 * Series merged by x for drawing. Between two neighbouring points of a series, x of other series get the straight line, so
 * lines look the same whoever else is on the chart; a missing or non-finite point stays a gap. Pure.
 */
import type { ChartSeries } from "./chart-series.ts";
import { smooth } from "./smooth.ts";

export interface ChartRow {
  x: number;
  [column: string]: number | null | [number, number];
}
export const rawColumn = (index: number): string => `raw${index}`;
export const smoothColumn = (index: number): string => `smooth${index}`;
export const bandColumn = (index: number): string => `band${index}`;

type Ordinate = { readonly x: number; readonly value: number | null };

/** Value at x on the polyline, null inside gaps and outside. `points` are ascending in x. */
export function valueOnLine(points: readonly Ordinate[], x: number): number | null {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.x ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  const right = points[low];
  if (!right) return null;
  if (right.x === x) return right.value;
  const left = points[low - 1];
  if (!left || right.x < x || left.value === null || right.value === null) return null;
  return left.value + ((right.value - left.value) * (x - left.x)) / (right.x - left.x);
}

export function chartRows(series: readonly ChartSeries[], smoothing: number): ChartRow[] {
  const xs = [...new Set(series.flatMap((each) => each.points.map((point) => point.x)))].sort((a, b) => a - b);
  const rows: ChartRow[] = xs.map((x) => ({ x }));
  series.forEach((each, index) => {
    const smoothed = smooth(each.points, smoothing).map((value, at) => ({ x: each.points[at]?.x ?? 0, value }));
    const banded = each.points.some((point) => point.count > 1 && point.min !== point.max);
    const lows = each.points.map(({ x, min }) => ({ x, value: min }));
    const highs = each.points.map(({ x, max }) => ({ x, value: max }));
    for (const row of rows) {
      row[smoothColumn(index)] = valueOnLine(smoothed, row.x);
      if (smoothing > 0) row[rawColumn(index)] = valueOnLine(each.points, row.x);
      if (!banded) continue;
      const low = valueOnLine(lows, row.x);
      const high = valueOnLine(highs, row.x);
      row[bandColumn(index)] = low === null || high === null ? null : [low, high];
    }
  });
  return rows;
}

/** The series' own point nearest to x; null for an empty series. */
export function nearestPoint<P extends { readonly x: number }>(points: readonly P[], x: number): P | null {
  let best: P | null = null;
  for (const point of points) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
  return best;
}
