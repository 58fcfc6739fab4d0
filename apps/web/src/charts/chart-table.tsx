import type { JSX } from "react";
import { Td, Th } from "../design/table.tsx";
import { formatExact, formatInUnit } from "../format/numbers.ts";
import type { ChartSeries } from "./chart-series.ts";

/** The same numbers as rows, newest first. */
export function ChartTable({
  series,
  unit,
  xTitle,
  height,
}: {
  series: readonly ChartSeries[];
  unit: string;
  xTitle: string;
  height: number;
}): JSX.Element {
  const xs = [...new Set(series.flatMap((each) => each.points.map((point) => point.x)))].sort((a, b) => b - a);
  const columns = series.map((each) => ({ ...each, byX: new Map(each.points.map((point) => [point.x, point])) }));
  return (
    <div className="overflow-auto border-y border-g3" style={{ height }}>
      <table className="w-full">
        <thead className="sticky top-0 bg-g0">
          <tr>
            <Th right>{xTitle}</Th>
            {columns.map((each) => (
              <Th key={each.key} right>
                {each.label}
              </Th>
            ))}
          </tr>
        </thead>
        <tbody>
          {xs.map((x) => (
            <tr key={x}>
              <Td right className="h-6!">
                {formatExact(x)}
              </Td>
              {columns.map((each) => {
                const point = each.byX.get(x);
                return (
                  <Td key={each.key} right className="h-6!">
                    {point ? (point.nonFinite ?? formatInUnit(point.value, unit)) : ""}
                  </Td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
