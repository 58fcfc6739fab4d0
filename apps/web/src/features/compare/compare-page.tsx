"use client";
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import type { MetricName } from "@rolldeck/contracts/metrics";
import { useQuery } from "@tanstack/react-query";
import { parseAsArrayOf, parseAsBoolean, parseAsInteger, parseAsString, useQueryStates } from "nuqs";
import { type JSX, useMemo } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { runStrokes } from "../../charts/run-colour.ts";
import { nextSmoothing, smoothingLevels } from "../../charts/smooth.ts";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { CompareCharts } from "./compare-charts.tsx";
import { ConfigDifferences } from "./config-differences.tsx";
import { RunPicker } from "./run-picker.tsx";
import { VerdictTable } from "./verdict-table.tsx";

const compared: readonly MetricName[] = [
  "reward/mean",
  "reward/success",
  "evaluate/success",
  "rollouts/turns",
  "throughput/tokens-per-second",
  "policy/entropy",
  "policy/grad-norm",
  "policy/logprob-gap",
  "rollouts/cut",
  "groups/zero-variance",
  "time/gather",
  "time/update",
];
const livePauseMs = 5_000;
const ended = new Set(["stopped", "completed", "failed"]);

export function ComparePage(): JSX.Element {
  const trpc = useTRPC();
  const [view, setView] = useQueryStates({
    runs: parseAsArrayOf(parseAsString).withDefault([]),
    smooth: parseAsInteger.withDefault(0),
    log: parseAsBoolean.withDefault(false),
    hidden: parseAsArrayOf(parseAsString).withDefault([]),
  });
  const runIds = useMemo(() => [...new Set(view.runs)].slice(0, 50), [view.runs]);
  const smoothing: number = smoothingLevels.find((level) => level * 100 === view.smooth) ?? 0;
  const comparison = useQuery(
    trpc.runs.compare.queryOptions(
      { runIds, names: [...compared] },
      {
        enabled: runIds.length > 0,
        placeholderData: (known) => known,
        refetchInterval: (query) =>
          query.state.data?.runs.some((run) => !ended.has(run.status)) ? livePauseMs : false,
      },
    ),
  );
  useCrumbs([{ label: "Compare", href: "/compare" }]);
  useKeys("Compare", [
    { keys: "s", label: "Smoothing", run: () => void setView({ smooth: nextSmoothing(smoothing) * 100 || null }) },
    { keys: "y", label: "Log scale", run: () => void setView({ log: view.log ? null : true }) },
  ]);
  const setRuns = (runs: string[]) => void setView({ runs: runs.length > 0 ? runs : null });
  const data = runIds.length > 0 ? comparison.data : undefined;
  const strokes = useMemo(() => runStrokes(data?.runs ?? []), [data?.runs]);
  const labels = useMemo(() => labelsOf(data?.runs ?? []), [data?.runs]);

  return (
    <div className="flex flex-col gap-6 p-4">
      <header className="flex flex-col gap-3">
        <div className="flex items-center gap-3">
          <h1 className="text-xl font-semibold">Compare runs</h1>
          <span className="flex-1" />
          {data && (
            <>
              <Segmented
                label="Smoothing"
                options={[
                  { value: "0", label: "Raw" },
                  { value: "0.6", label: "Smooth" },
                  { value: "0.9", label: "Smoother" },
                ]}
                value={String(smoothing)}
                onChange={(value) => void setView({ smooth: Number(value) * 100 || null })}
              />
              <Segmented
                label="Scale"
                options={[
                  { value: "linear", label: "Linear" },
                  { value: "log", label: "Log" },
                ]}
                value={view.log ? "log" : "linear"}
                onChange={(value) => void setView({ log: value === "log" || null })}
              />
            </>
          )}
        </div>
        <RunPicker
          runs={data?.runs ?? []}
          runIds={runIds}
          labels={labels}
          strokes={strokes}
          hidden={view.hidden}
          onRuns={setRuns}
          onHidden={(hidden) => void setView({ hidden: hidden.length > 0 ? hidden : null })}
        />
      </header>
      {comparison.error && (
        <ErrorBanner error={comparison.error} doing="compare these runs" onRetry={() => void comparison.refetch()} />
      )}
      {runIds.length === 0 && (
        <p className="max-w-[560px] text-g8">
          Pick two or more runs above, or press <span className="mono">x</span> on rows of the run list and then{" "}
          <span className="mono">c</span>. The first one is the baseline.
        </p>
      )}
      {runIds.length > 0 && comparison.isPending && <Skeleton className="h-96" />}
      {data && (
        <>
          {data.warnings.length > 0 && (
            <ul aria-label="Warnings" className="flex flex-col gap-1">
              {data.warnings.map((warning) => (
                <li key={warning} className="rounded-md bg-paused-soft px-3 py-1.5 text-paused">
                  ‖ {warning}
                </li>
              ))}
            </ul>
          )}
          <ConfigDifferences comparison={data} labels={labels} strokes={strokes} />
          <VerdictTable comparison={data} labels={labels} strokes={strokes} />
          <CompareCharts
            comparison={data}
            labels={labels}
            strokes={strokes}
            hidden={view.hidden}
            smoothing={smoothing}
            log={view.log}
          />
        </>
      )}
    </div>
  );
}

/** Names, told apart by the end of the id where two are alike. */
function labelsOf(runs: readonly RunSummary[]): Map<string, string> {
  const counts = new Map<string, number>();
  for (const run of runs) counts.set(run.name, (counts.get(run.name) ?? 0) + 1);
  return new Map(
    runs.map((run) => [run.runId, (counts.get(run.name) ?? 0) > 1 ? `${run.name} ·${run.runId.slice(-4)}` : run.name]),
  );
}
