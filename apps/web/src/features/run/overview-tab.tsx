"use client";
import type { MetricSeries, RunDetail } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import { parseAsBoolean, parseAsInteger, useQueryStates } from "nuqs";
import { type JSX, useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import type { ChartMark, ChartSeries } from "../../charts/chart-series.ts";
import { Crosshair, CrosshairContext } from "../../charts/crosshair.ts";
import { LineChart } from "../../charts/line-chart.tsx";
import { runColour, strokeAt } from "../../charts/run-colour.ts";
import { nextSmoothing, smoothingLevels } from "../../charts/smooth.ts";
import { Button } from "../../design/button.tsx";
import { join } from "../../design/join.ts";
import { QueryError } from "../../design/query-error.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { useKeys } from "../shell/keys.ts";
import { BootPanel } from "./boot-panel.tsx";
import { chartDefinition, chartUnit, metricsOf, type OverviewChart, overviewCharts } from "./overview-charts.ts";
import { unlessFrozen } from "./unless-frozen.ts";
import type { RunFeed } from "./use-run-feed.ts";
import { verdict } from "./verdict.ts";
import { WaitBar } from "./wait-bar.tsx";

const live = ["queued", "preparing", "running", "pausing", "stopping"];
const smoothingNames: Record<number, string> = { 0: "Raw", 0.6: "Smooth", 0.9: "Smoother" };
const noSeries: readonly MetricSeries[] = [];

function seriesOf(chart: OverviewChart, all: readonly MetricSeries[], run: RunDetail): ChartSeries[] {
  return chart.lines.flatMap(({ metric, label }, index) => {
    const found = all.find((each) => each.name === metric);
    if (!found || found.points.length === 0) return [];
    return [
      {
        key: metric,
        label,
        ...(chart.equals ? strokeAt(index) : lineStroke(index, run)),
        points: found.points.map((point) => ({ ...point, x: point.step })),
      },
    ];
  });
}

const lineStroke = (index: number, run: RunDetail) =>
  index === 0 ? { colour: runColour(run) } : { colour: "var(--g7)", dash: "5 3" };

export function OverviewTab({ run, frozen, feed }: { run: RunDetail; frozen: boolean; feed: RunFeed }): JSX.Element {
  const trpc = useTRPC();
  const [crosshair] = useState(() => new Crosshair());
  const [view, setView] = useQueryStates({
    smooth: parseAsInteger.withDefault(0),
    log: parseAsBoolean.withDefault(false),
    from: parseAsInteger,
    to: parseAsInteger,
  });
  const smoothing = (smoothingLevels.find((level) => level * 100 === view.smooth) ?? 0) as number;
  const zoomed = view.from !== null && view.to !== null && view.to > view.from;
  const chosen = useMemo(() => overviewCharts({ taskSets: run.config.taskSets }), [run.config.taskSets]);
  const metrics = useQuery(
    trpc.runs.metrics.queryOptions(
      {
        runId: run.runId,
        names: metricsOf(chosen),
        ...(zoomed ? { fromStep: view.from ?? 0, toStep: view.to ?? 0 } : {}),
      },
      {
        enabled: unlessFrozen(frozen),
        placeholderData: (known) => known,
        refetchInterval: live.includes(run.status) ? 10_000 : false,
      },
    ),
  );
  const series = metrics.data?.series ?? noSeries;
  const marks = useMemo<ChartMark[]>(
    () =>
      run.checkpoints.map((checkpoint) => ({
        x: checkpoint.version,
        kind: "checkpoint",
        label: `checkpoint ${checkpoint.name}`,
      })),
    [run.checkpoints],
  );
  const charts = useMemo(
    () =>
      chosen
        .map((chart) => ({ chart, series: seriesOf(chart, series, run) }))
        .filter(({ chart, series: lines }) => !chart.ifKnown || lines.length > 0),
    [chosen, series, run],
  );
  useKeys("Charts", [
    { keys: "s", label: "Smoothing", run: () => void setView({ smooth: nextSmoothing(smoothing) * 100 || null }) },
    { keys: "y", label: "Log scale", run: () => void setView({ log: view.log ? null : true }) },
    { keys: "0", label: "Whole range", run: () => void setView({ from: null, to: null }) },
  ]);

  const anything = charts.some((each) => each.series.length > 0);
  if (!anything && !metrics.isPending && !metrics.error && ["queued", "preparing"].includes(run.status))
    return <BootPanel run={run} feed={feed} />;
  const said = run.preflight ? { text: run.preflight.text, alarm: !run.preflight.ok } : verdict(run, series);
  const why = emptyReason(run, metrics.isPending);
  return (
    <CrosshairContext value={crosshair}>
      <div className="flex flex-wrap items-center gap-3 px-4 pt-3">
        {said && (
          <p className={join("text-lg", said.alarm ? "font-medium text-failed" : "text-g9")}>
            {said.alarm && "▲ "}
            {said.text}
          </p>
        )}
        <span className="flex-1" />
        {zoomed && (
          <Button look="quiet" className="h-7" onClick={() => void setView({ from: null, to: null })}>
            Steps {view.from}–{view.to} · whole range
          </Button>
        )}
        <Segmented
          label="Smoothing"
          options={smoothingLevels.map((level) => ({
            value: String(level),
            label: smoothingNames[level] ?? "",
            title: `Exponential smoothing, weight ${level} (s)`,
          }))}
          value={String(smoothing)}
          onChange={(value) => void setView({ smooth: Number(value) * 100 || null })}
        />
        <Segmented
          label="Scale"
          options={[
            { value: "linear", label: "Linear", title: "Linear scale (y)" },
            { value: "log", label: "Log", title: "Log scale where all values are positive (y)" },
          ]}
          value={view.log ? "log" : "linear"}
          onChange={(value) => void setView({ log: value === "log" || null })}
        />
      </div>
      {metrics.error && (
        <div className="px-4 pt-3">
          <QueryError query={metrics} doing="load the metrics" />
        </div>
      )}
      <div className="grid grid-cols-12 gap-x-6 gap-y-5 p-4">
        {charts.map(({ chart, series: lines }) => (
          <div
            key={chart.title}
            className={join("col-span-12 md:col-span-6", !chart.big && "lg:col-span-4 min-[106rem]:col-span-3")}
          >
            <LineChart
              title={chart.title}
              unit={chartUnit(chart)}
              definition={chartDefinition(chart)}
              series={lines}
              marks={marks}
              smoothing={smoothing}
              log={view.log}
              height={chart.big ? 208 : 148}
              empty={why}
              xDomain={zoomed ? [view.from ?? 0, view.to ?? 1] : null}
              onZoom={(from, to) => to > from && void setView({ from, to })}
              fileName={`${run.runId}-${chart.title.toLowerCase().replaceAll(" ", "-")}`}
            />
          </div>
        ))}
      </div>
      <WaitBar series={series} />
    </CrosshairContext>
  );
}

function emptyReason(run: RunDetail, loading: boolean): string {
  if (loading) return "Loading.";
  if (run.config.kind === "evaluate") return "An evaluation run makes no updates.";
  if (live.includes(run.status)) return "The first point comes with the first finished step.";
  return `No step finished before the run was ${run.status}.`;
}
