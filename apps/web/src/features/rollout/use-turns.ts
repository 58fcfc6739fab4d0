"use client";
/** All turns of an attempt, page by page from the first; later turns are appended as they commit. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { useTRPCClient } from "../../api/query-provider.tsx";

const pageSize = 100;
export const turnsKey = (rolloutId: string, attempt: number | undefined) => ["turns", rolloutId, attempt ?? 0] as const;

export function useTurns(rolloutId: string, attempt: number | undefined) {
  const client = useTRPCClient();
  const query = useInfiniteQuery({
    queryKey: turnsKey(rolloutId, attempt),
    queryFn: ({ pageParam, signal }) =>
      client.rollouts.turns.query({ rolloutId, attempt, after: pageParam, limit: pageSize }, { signal }),
    initialPageParam: -1,
    getNextPageParam: (page) => (page.more ? page.turns.at(-1)?.turn : undefined),
    placeholderData: keepPreviousData,
  });
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isError } = query;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, isError]);
  const turns: readonly TurnView[] = useMemo(() => query.data?.pages.flatMap((page) => page.turns) ?? [], [query.data]);
  return { query, turns };
}
