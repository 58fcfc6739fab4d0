"use client";
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { parseAsStringLiteral, useQueryState } from "nuqs";
import { type JSX, useMemo, useState } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { type TabItem, Tabs } from "../../design/tabs.tsx";
import { formatCount, shortenId } from "../../format/numbers.ts";
import { CheckpointsTab } from "../checkpoints/checkpoints-tab.tsx";
import { EvaluationTab } from "../evaluation/evaluation-tab.tsx";
import { ScheduleTab } from "../schedule/schedule-tab.tsx";
import { useKeys } from "../shell/keys.ts";
import { useActions, useCrumbs } from "../shell/page-header.ts";
import { ConfigTab } from "./config-tab.tsx";
import { GpuWorkersPanel } from "./gpu-workers-panel.tsx";
import { LogTab } from "./log-tab.tsx";
import { OverviewTab } from "./overview-tab.tsx";
import { RefusalBanner } from "./refusal-banner.tsx";
import { RolloutsTab } from "./rollouts-tab.tsx";
import { RunHeader } from "./run-header.tsx";
import { SandboxesTab, useSandboxCounts } from "./sandboxes-tab.tsx";
import { TimelineTab } from "./timeline-tab.tsx";
import { TrainerPanel } from "./trainer-panel.tsx";
import { useAdjacentRun } from "./use-adjacent-run.ts";
import { useRunFeed } from "./use-run-feed.ts";
import { WaitingBanner } from "./waiting-banner.tsx";

const tabs = [
  ...(["overview", "rollouts", "timeline", "log", "config", "checkpoints"] as const),
  ...(["schedule", "evaluation", "sandboxes"] as const),
] as const;
type Tab = (typeof tabs)[number];
const labels: Record<Tab, string> = {
  overview: "Overview",
  rollouts: "Rollouts",
  timeline: "Timeline",
  log: "Log",
  config: "Config",
  checkpoints: "Checkpoints",
  schedule: "Schedule",
  evaluation: "Evaluation",
  sandboxes: "Sandboxes",
};

export function RunPage({ runId }: { runId: string }): JSX.Element {
  const trpc = useTRPC();
  const router = useRouter();
  const [frozen, setFrozen] = useState(false);
  const [asked, setTab] = useQueryState("tab", parseAsStringLiteral(tabs));
  const detail = useQuery(
    trpc.runs.get.queryOptions(
      { runId },
      // An absence brings no events: it is asked for.
      { enabled: !frozen, refetchInterval: ({ state }) => (state.data?.waitingFor ? 5_000 : 15_000) },
    ),
  );
  const run = detail.data;
  // An evaluation run has no training to chart: its scores come first.
  const tab = asked ?? (run?.kind === "evaluate" ? "evaluation" : "overview");
  const feed = useRunFeed(runId, run?.head ?? null, frozen);
  const { all: allSandboxes, live: liveSandboxes } = useSandboxCounts(runId, frozen);
  // Most runs open none: they have no tab for them.
  const withSandboxes = allSandboxes > 0 || tab === "sandboxes";
  const shownTabs = useMemo(() => tabs.filter((each) => each !== "sandboxes" || withSandboxes), [withSandboxes]);
  const adjacent = useAdjacentRun(runId);
  useCrumbs([
    { label: "Runs", href: "/runs" },
    { label: run?.name ?? shortenId(runId), href: `/runs/${runId}` },
  ]);
  useActions(
    useMemo(
      () => [
        { label: "Relaunch this run with changes", run: () => router.push(`/runs/new?from=${runId}`) },
        { label: "Compare this run with others", run: () => router.push(`/compare?runs=${runId}`) },
        ...shownTabs.map((each) => ({ label: `Show ${labels[each].toLowerCase()}`, run: () => void setTab(each) })),
      ],
      [router, runId, setTab, shownTabs],
    ),
  );
  useKeys("Run", [
    ...shownTabs.map((each, index) => ({ keys: String(index + 1), label: labels[each], run: () => void setTab(each) })),
    { keys: "[", label: "Newer run", run: () => adjacent.newer && router.push(`/runs/${adjacent.newer}?tab=${tab}`) },
    { keys: "]", label: "Older run", run: () => adjacent.older && router.push(`/runs/${adjacent.older}?tab=${tab}`) },
    { keys: "z", label: "Freeze or go on", run: () => setFrozen(!frozen) },
  ]);

  if (!run) {
    return detail.error ? (
      <div className="p-4">
        <ErrorBanner
          error={detail.error}
          doing={problemOf(detail.error).status === 404 ? "find this run" : "load this run"}
          onRetry={() => void detail.refetch()}
        />
      </div>
    ) : (
      <div className="flex flex-col gap-4 p-4">
        <Skeleton className="h-12" />
        <Skeleton className="h-9 w-1/2" />
        <Skeleton className="h-64" />
      </div>
    );
  }
  const items: TabItem<Tab>[] = shownTabs.map((each) => ({
    value: each,
    label: labels[each],
    ...(each === "sandboxes" && liveSandboxes > 0 ? { count: `${formatCount(liveSandboxes)} live` } : {}),
    ...(each === "checkpoints" && run.checkpoints.length > 0 ? { count: String(run.checkpoints.length) } : {}),
  }));
  return (
    <>
      <RunHeader run={run} frozen={frozen} onUnfreeze={() => setFrozen(false)} />
      <div className="shrink-0 overflow-x-auto border-b border-g3 px-4">
        <Tabs items={items} value={tab} onChange={(next) => void setTab(next)} label="Run" />
      </div>
      <WaitingBanner run={run} />
      <RefusalBanner run={run} />
      <TrainerPanel run={run} frozen={frozen} />
      <GpuWorkersPanel run={run} frozen={frozen} />
      {detail.error && (
        <div className="px-4 pt-3">
          <QueryError query={detail} doing="refresh this run" />
        </div>
      )}
      <div
        role="tabpanel"
        id={`panel-${tab}`}
        aria-labelledby={`tab-${tab}`}
        className="flex min-h-0 flex-1 flex-col"
        data-frozen={frozen || undefined}
      >
        {tab === "overview" && <OverviewTab run={run} frozen={frozen} feed={feed} />}
        {tab === "rollouts" && <RolloutsTab run={run} frozen={frozen} />}
        {tab === "timeline" && <TimelineTab run={run} frozen={frozen} />}
        {tab === "log" && <LogTab run={run} feed={feed} />}
        {tab === "config" && <ConfigTab run={run} />}
        {tab === "checkpoints" && <CheckpointsTab run={run} frozen={frozen} />}
        {tab === "sandboxes" && <SandboxesTab run={run} frozen={frozen} />}
        {tab === "schedule" && <ScheduleTab run={run} frozen={frozen} />}
        {tab === "evaluation" && <EvaluationTab run={run} frozen={frozen} />}
      </div>
    </>
  );
}
