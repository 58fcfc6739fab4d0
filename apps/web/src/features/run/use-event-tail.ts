"use client";
/**
 * The end of a run's event log without holes: stored ranges, asked for from the end backwards, joined with what came live.
 * Invariant: `events` are consecutive by `seq`; what lies before a hole is left out until it is loaded.
 */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { RunEvent } from "@rolldeck/contracts/events";
import { useQueries } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { consecutiveEnd } from "./consecutive-end.ts";
import type { RunFeed } from "./use-run-feed.ts";

const rangeSize = 500;

interface Range {
  readonly after: number;
  readonly limit: number;
}
/** The range that ends right before `seq`. */
const rangeBefore = (seq: number): Range => {
  const after = Math.max(0, seq - 1 - rangeSize);
  return { after, limit: Math.max(1, seq - 1 - after) };
};

export interface EventTail {
  readonly events: readonly RunEvent[];
  readonly error: unknown;
  readonly loading: boolean;
  /** First `seq` shown; more exist before it when above 1. */
  readonly from: number;
  loadEarlier(): void;
}

export function useEventTail(run: RunDetail, feed: RunFeed): EventTail {
  const trpc = useTRPC();
  const [ranges, setRanges] = useState<readonly Range[]>(run.head > 0 ? [rangeBefore(run.head + 1)] : []);
  const stored = useQueries({
    queries: ranges.map((range) =>
      trpc.runs.events.queryOptions({ runId: run.runId, ...range }, { staleTime: Number.POSITIVE_INFINITY }),
    ),
    combine: (results) => ({
      pages: results.map((result) => result.data),
      error: results.find((result) => result.error)?.error ?? null,
      loading: results.some((result) => result.isLoading),
    }),
  });
  const events = useMemo(
    () => consecutiveEnd([...stored.pages.flatMap((page) => page?.events ?? []), ...feed.events]),
    [stored.pages, feed.events],
  );
  const from = events[0]?.seq ?? 1;
  return {
    events,
    error: stored.error,
    loading: stored.loading,
    from,
    loadEarlier: () => from > 1 && setRanges([...ranges, rangeBefore(from)]),
  };
}
