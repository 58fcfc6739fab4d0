import { expect, test } from "vitest";
import { chartRows, nearestPoint, valueOnLine } from "./chart-rows.ts";
import type { ChartPoint } from "./chart-series.ts";
import { endLabels } from "./end-labels.ts";

const point = (x: number, value: number | null, more: Partial<ChartPoint> = {}): ChartPoint => ({
  x,
  value,
  min: value,
  max: value,
  count: 1,
  nonFinite: null,
  ...more,
});

test("between two points a series is the straight line; gaps and ends stay empty", () => {
  const points = [point(0, 0), point(10, 10), point(20, null), point(30, 30)];
  expect(valueOnLine(points, 5)).toBe(5);
  expect(valueOnLine(points, 15)).toBeNull();
  expect(valueOnLine(points, 25)).toBeNull();
  expect(valueOnLine(points, 31)).toBeNull();
  expect(valueOnLine([], 1)).toBeNull();
});

test("series on different steps share rows without changing each other", () => {
  const rows = chartRows(
    [
      { key: "a", label: "a", colour: "red", points: [point(0, 0), point(4, 4)] },
      { key: "b", label: "b", colour: "blue", points: [point(1, 9), point(2, 7)] },
    ],
    0,
  );
  expect(rows.map((row) => row.x)).toEqual([0, 1, 2, 4]);
  expect(rows.map((row) => row.smooth0)).toEqual([0, 1, 2, 4]);
  expect(rows.map((row) => row.smooth1)).toEqual([null, 9, 7, null]);
  expect(rows[0]).not.toHaveProperty("raw0");
});

test("bucketed points bring their band, so that a spike survives", () => {
  const [row] = chartRows(
    [{ key: "a", label: "a", colour: "red", points: [point(0, 1, { min: 0, max: 99, count: 40 })] }],
    0.9,
  );
  expect(row?.band0).toEqual([0, 99]);
  expect(row?.raw0).toBe(1);
});

test("the nearest point wins", () => {
  expect(nearestPoint([point(1, 1), point(4, 4)], 3)?.x).toBe(4);
  expect(nearestPoint([], 3)).toBeNull();
});

test("labels at line ends never overlap and stay inside", () => {
  const placed = endLabels([50, 51, 52, null], 10, 100);
  expect(placed[3]).toBeNull();
  const heights = placed.filter((y): y is number => y !== null).sort((a, b) => a - b);
  for (let index = 1; index < heights.length; index += 1)
    expect((heights[index] ?? 0) - (heights[index - 1] ?? 0)).toBeGreaterThanOrEqual(14);
  expect(Math.max(...heights)).toBeLessThanOrEqual(100);
});
