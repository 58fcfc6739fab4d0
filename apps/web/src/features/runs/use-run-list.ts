"use client";
/**
 * Pages of runs, kept true while the list is open: shown rows are patched, and runs made since are counted ("3 new")
 * instead of pushing rows away under the pointer.
 */
import type { RunSummary } from "@rolldeck/contracts/api/runs";
import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTRPCClient } from "../../api/query-provider.tsx";
import { useRunsChanged } from "../../live/live-provider.tsx";
import { useThrottled } from "../../live/throttle.ts";

export interface RunSort {
  readonly sort: "createdAt" | "name" | "reward";
  readonly descending: boolean;
}
export const runListKey = "run-list";
const firstPage: string | null = null;
const endedStatuses = new Set(["stopped", "completed", "failed"]);

export function useRunList(query: string, { sort, descending }: RunSort) {
  const api = useTRPCClient();
  const client = useQueryClient();
  const list = useInfiniteQuery({
    queryKey: [runListKey, query, sort, descending],
    queryFn: ({ pageParam, signal }) =>
      api.runs.list.query({ query, sort, descending, limit: 100, cursor: pageParam }, { signal }),
    initialPageParam: firstPage,
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: keepPreviousData,
    // Sockets hint within a second; this is for when they can't.
    refetchInterval: (current) =>
      current.state.data?.pages.some((page) => page.items.some((run) => !endedStatuses.has(run.status)))
        ? 5_000
        : 15_000,
  });
  useRunsChanged(useThrottled(() => void client.invalidateQueries({ queryKey: [runListKey] }), 1_000));

  const items = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const [seenUntil, setSeenUntil] = useState<{ readonly key: string; readonly at: string } | null>(null);
  const key = `${query} ${sort} ${descending}`;
  const newest = items.reduce((at, run) => [at, run.createdAt].sort()[1] ?? at, "");
  if (list.data && !list.isPlaceholderData && seenUntil?.key !== key) setSeenUntil({ key, at: newest });
  const until = seenUntil?.at || newest;
  const runs: RunSummary[] = items.filter((run) => run.createdAt <= until);
  return {
    list,
    runs,
    total: list.data?.pages[0]?.total ?? null,
    fresh: items.length - runs.length,
    showFresh: () => setSeenUntil({ key, at: newest }),
  };
}
