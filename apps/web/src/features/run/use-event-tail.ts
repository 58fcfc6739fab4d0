"use client";
/** The newest stored events of a run with those that came live after them, each `seq` once, oldest first. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { RunEvent } from "@rolldeck/contracts/events";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import type { RunFeed } from "./use-run-feed.ts";

const pageSize = 500;

export interface EventTail {
  readonly events: readonly RunEvent[];
  readonly error: unknown;
  readonly loading: boolean;
  /** First `seq` loaded; more exist before it when above 1. */
  readonly from: number;
  loadEarlier(): void;
}

export function useEventTail(run: RunDetail, feed: RunFeed): EventTail {
  const trpc = useTRPC();
  const [head] = useState(run.head);
  const [pages, setPages] = useState(1);
  const after = Math.max(0, head - pages * pageSize);
  const limit = Math.min(1000, Math.max(1, head - after));
  const stored = useQuery(
    trpc.runs.events.queryOptions(
      { runId: run.runId, after, limit },
      { staleTime: Number.POSITIVE_INFINITY, enabled: head > 0, placeholderData: (known) => known },
    ),
  );
  const events = useMemo(() => {
    const bySeq = new Map<number, RunEvent>();
    for (const event of stored.data?.events ?? []) bySeq.set(event.seq, event);
    for (const event of feed.events) bySeq.set(event.seq, event);
    return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
  }, [stored.data, feed.events]);
  return {
    events,
    error: stored.error,
    loading: stored.isLoading,
    from: events[0]?.seq ?? 1,
    loadEarlier: () => setPages(Math.min(2, pages + 1)),
  };
}
