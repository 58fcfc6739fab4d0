"use client";
/** One launched comparison: its runs by numbers that mean the same in all, and what each backend says of itself. */
import { useQuery } from "@tanstack/react-query";
import Link from "next/link";
import { type JSX, useCallback } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { shortenId } from "../../format/numbers.ts";
import { ChartViewButtons, useChartView } from "../compare/chart-view.tsx";
import { CompareCharts } from "../compare/compare-charts.tsx";
import { useLook } from "../compare/compared.ts";
import { ConfigDifferences } from "../compare/config-differences.tsx";
import { anyLive, livePause } from "../compare/live-runs.ts";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { DefinitionNotes } from "./definition-notes.tsx";
import { NativeTable } from "./native-table.tsx";
import { VariantTable } from "./variant-table.tsx";

export function ComparisonPage({ comparisonId }: { comparisonId: string }): JSX.Element {
  const trpc = useTRPC();
  const view = useChartView("Charts");
  const query = useQuery(
    trpc.comparisons.get.queryOptions(
      { comparisonId },
      { refetchInterval: ({ state }) => livePause(state.data?.compared.runs) },
    ),
  );
  const { data } = query;
  useCrumbs([
    { label: "Compare", href: "/compare" },
    { label: data?.name ?? shortenId(comparisonId), href: `/comparisons/${comparisonId}` },
  ]);
  const toggle = (runId: string) =>
    view.setHidden(view.hidden.includes(runId) ? view.hidden.filter((id) => id !== runId) : [...view.hidden, runId]);
  useKeys(
    "Variants",
    (data?.variants ?? []).slice(0, 9).map(({ runId }, at) => ({
      keys: String(at + 1),
      label: `Show or hide variant ${at + 1}`,
      run: () => toggle(runId),
    })),
  );
  const variants = data?.variants;
  const named = useCallback(
    () => new Map((variants ?? []).map(({ runId, label }) => [runId, label] as const)),
    [variants],
  );
  const look = useLook(data?.compared.runs, named);

  const problem = query.error && (
    <ErrorBanner
      error={query.error}
      doing={problemOf(query.error).status === 404 ? "find this comparison" : "load this comparison"}
      shownSince={data ? query.dataUpdatedAt : 0}
      onRetry={() => void query.refetch()}
    />
  );
  if (!data)
    return (
      <div className="flex flex-col gap-4 p-4">
        {problem ?? (
          <>
            <Skeleton className="h-9 w-1/2" />
            <Skeleton className="h-32" />
            <Skeleton className="h-64" />
          </>
        )}
      </div>
    );
  const { compared } = data;
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-6 overflow-auto p-4">
      <header className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold [overflow-wrap:anywhere]">{data.name}</h1>
        <span className="text-sm text-g7">
          {data.variants.length} variants, launched <TimeAgo at={data.createdAt} />
        </span>
        <Link
          href={`/compare?runs=${data.variants.map(({ runId }) => runId).join(",")}`}
          className="text-sm text-accent-text hover:underline"
        >
          Compare by all metrics
        </Link>
        <span className="flex-1" />
        <ChartViewButtons view={view} />
      </header>
      {problem}
      <VariantTable comparison={data} strokes={look.strokes} hidden={view.hidden} onToggle={toggle} />
      <DefinitionNotes comparison={data} />
      <CompareCharts
        comparison={compared}
        {...look}
        view={view}
        empty={
          anyLive(compared.runs)
            ? "The first point comes with the first finished step."
            : "None of these runs has this metric."
        }
      />
      <NativeTable comparison={data} {...look} />
      <ConfigDifferences comparison={compared} {...look} />
    </div>
  );
}
