"use client";
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import type { MetricName } from "@rolldeck/contracts/metrics";
import { useQuery } from "@tanstack/react-query";
import { parseAsArrayOf, parseAsString, useQueryState } from "nuqs";
import { type JSX, useMemo } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { LaunchedComparisons } from "../comparison/launched-comparisons.tsx";
import { useCrumbs } from "../shell/page-header.ts";
import { Caution } from "./caution.tsx";
import { ChartViewButtons, useChartView } from "./chart-view.tsx";
import { CompareCharts } from "./compare-charts.tsx";
import { useLook } from "./compared.ts";
import { ConfigDifferences } from "./config-differences.tsx";
import { livePause } from "./live-runs.ts";
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

export function ComparePage(): JSX.Element {
  const trpc = useTRPC();
  const [asked, setAsked] = useQueryState("runs", parseAsArrayOf(parseAsString).withDefault([]));
  const view = useChartView("Compare");
  const runIds = useMemo(() => [...new Set(asked)].slice(0, 50), [asked]);
  const comparison = useQuery(
    trpc.runs.compare.queryOptions(
      { runIds, names: [...compared] },
      {
        enabled: runIds.length > 0,
        placeholderData: (known) => known,
        refetchInterval: ({ state }) => livePause(state.data?.runs),
      },
    ),
  );
  useCrumbs([{ label: "Compare", href: "/compare" }]);
  const setRuns = (runs: string[]) => void setAsked(runs.length > 0 ? runs : null);
  const data = runIds.length > 0 ? comparison.data : undefined;
  const look = useLook(data?.runs, labelsOf);

  return (
    <div className="flex flex-col gap-6 p-4">
      <header className="flex flex-col gap-3">
        <div className="flex items-center gap-3">
          <h1 className="text-xl font-semibold">Compare runs</h1>
          <span className="flex-1" />
          {data && <ChartViewButtons view={view} />}
        </div>
        <RunPicker
          runs={data?.runs ?? []}
          runIds={runIds}
          {...look}
          hidden={view.hidden}
          onRuns={setRuns}
          onHidden={view.setHidden}
        />
      </header>
      {comparison.error && (
        <ErrorBanner
          error={comparison.error}
          doing="compare these runs"
          shownSince={data ? comparison.dataUpdatedAt : 0}
          onRetry={() => void comparison.refetch()}
        />
      )}
      {runIds.length === 0 && (
        <>
          <p className="max-w-[560px] text-g8">
            Pick two or more runs above, or press <span className="mono">x</span> on rows of the run list and then{" "}
            <span className="mono">c</span>. The first one is the baseline.
          </p>
          <LaunchedComparisons />
        </>
      )}
      {runIds.length > 0 && comparison.isPending && <Skeleton className="h-96" />}
      {data && (
        <>
          {data.warnings.length > 0 && (
            <ul aria-label="Warnings" className="flex flex-col gap-1">
              {data.warnings.map((warning) => (
                <Caution key={warning}>{warning}</Caution>
              ))}
            </ul>
          )}
          <ConfigDifferences comparison={data} {...look} />
          <VerdictTable comparison={data} {...look} />
          <CompareCharts comparison={data} {...look} view={view} />
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
