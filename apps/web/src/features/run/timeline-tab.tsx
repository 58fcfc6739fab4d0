"use client";
import type { RunDetail, Timeline } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import { parseAsInteger, useQueryState } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { useWidth } from "../../charts/use-width.ts";
import { EmptyState } from "../../design/empty-state.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { TimelineLanes } from "./timeline-lanes.tsx";
import { unlessFrozen } from "./unless-frozen.ts";

const ranges = [
  { value: "120", label: "2 min" },
  { value: "600", label: "10 min" },
  { value: "3600", label: "1 h" },
  { value: "86400", label: "24 h" },
] as const;

export function TimelineTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const [seconds, setSeconds] = useQueryState("range", parseAsInteger.withDefault(600));
  const [box, width] = useWidth<HTMLDivElement>();
  const ended = run.endedAt !== null;
  const query = useQuery(
    trpc.runs.timeline.queryOptions(
      { runId: run.runId, seconds: Math.min(86_400, Math.max(10, seconds)), slices: 240 },
      { enabled: unlessFrozen(frozen), placeholderData: (known) => known, refetchInterval: ended ? false : 2_000 },
    ),
  );
  const nothing = query.data && isEmpty(query.data);
  return (
    <div className="flex min-h-0 flex-1 flex-col overflow-auto">
      <div className="flex items-center gap-3 px-4 py-2">
        <Segmented
          label="Range"
          options={ranges}
          value={ranges.find((range) => range.value === String(seconds))?.value ?? "600"}
          onChange={(value) => void setSeconds(Number(value))}
        />
        <span className="text-sm text-g7">
          Rollouts in each stage over time: filled while a worker holds them, hatched while they wait.
        </span>
      </div>
      {query.error && (
        <div className="px-4">
          <QueryError query={query} doing="load the timeline" />
        </div>
      )}
      <div ref={box} className="min-w-0 px-4">
        {query.isPending && <Skeleton className="h-96" />}
        {query.data && width > 0 && !nothing && <TimelineLanes timeline={query.data} width={width} />}
      </div>
      {nothing && (
        <EmptyState title="Nothing happened in this range">
          <p>
            {run.startedAt
              ? "Choose a longer range: it counts back from the run's newest moment."
              : "Stages appear when the first step begins."}
          </p>
        </EmptyState>
      )}
    </div>
  );
}

const isEmpty = (timeline: Timeline): boolean =>
  timeline.marks.length === 0 &&
  timeline.lanes.every(
    (lane) => lane.active.every((count) => count === 0) && lane.queued.every((count) => count === 0),
  );
