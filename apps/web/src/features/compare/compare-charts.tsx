"use client";
import { metrics } from "@rolldeck/contracts/metrics";
import { type JSX, useState } from "react";
import { Crosshair, CrosshairContext } from "../../charts/crosshair.ts";
import { LineChart } from "../../charts/line-chart.tsx";
import { join } from "../../design/join.ts";
import type { ChartView } from "./chart-view.tsx";
import type { Compared } from "./compared.ts";

/** One chart a metric, one line a run, one cursor for all. */
export function CompareCharts({
  comparison,
  labels,
  strokes,
  view: { hidden, smoothing, log },
  empty = "None of these runs has this metric.",
}: Compared & {
  view: Pick<ChartView, "hidden" | "smoothing" | "log">;
  /** Why a chart has nothing. */
  empty?: string;
}): JSX.Element {
  const [crosshair] = useState(() => new Crosshair());
  return (
    <CrosshairContext value={crosshair}>
      <section aria-label="By step">
        <h2 className="mb-2 text-lg font-semibold">By step</h2>
        <div className="grid grid-cols-12 gap-x-6 gap-y-5">
          {comparison.metrics.map((metric, index) => (
            <div
              key={metric.name}
              className={join("col-span-12 md:col-span-6", index >= 2 && "lg:col-span-4 min-[106rem]:col-span-3")}
            >
              <LineChart
                title={metrics[metric.name].title}
                unit={metrics[metric.name].unit}
                definition={metrics[metric.name].definition}
                smoothing={smoothing}
                log={log}
                height={index < 2 ? 220 : 156}
                empty={empty}
                fileName={`compare-${metric.name.replace("/", "-")}`}
                series={metric.series
                  .filter((each) => !hidden.includes(each.runId) && each.points.length > 0)
                  .map((each) => ({
                    key: each.runId,
                    label: labels.get(each.runId) ?? each.runId,
                    colour: strokes.get(each.runId)?.colour ?? "var(--g7)",
                    dash: strokes.get(each.runId)?.dash,
                    points: each.points.map((point) => ({ ...point, x: point.step })),
                  }))}
              />
            </div>
          ))}
        </div>
      </section>
    </CrosshairContext>
  );
}
