"use client";
import { useInfiniteQuery } from "@tanstack/react-query";
import Link from "next/link";
import type { JSX } from "react";
import { useTRPCClient } from "../../api/query-provider.tsx";
import { Button, ButtonLink } from "../../design/button.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatCount } from "../../format/numbers.ts";

export const launchedComparisonsKey = "launched-comparisons";
const firstPage: string | null = null;

/** Comparisons that were launched as such, newest first. */
export function LaunchedComparisons(): JSX.Element {
  const api = useTRPCClient();
  const query = useInfiniteQuery({
    queryKey: [launchedComparisonsKey],
    queryFn: ({ pageParam, signal }) => api.comparisons.list.query({ limit: 20, cursor: pageParam }, { signal }),
    initialPageParam: firstPage,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: 15_000,
  });
  const items = query.data?.pages.flatMap((page) => page.items);
  return (
    <section aria-label="Launched comparisons">
      <div className="mb-1 flex items-center gap-3">
        <h2 className="text-lg font-semibold">Launched comparisons</h2>
        <ButtonLink href="/comparisons/new" className="h-7!">
          New comparison
        </ButtonLink>
      </div>
      <QueryError query={query} doing="list the comparisons" />
      {!items ? (
        query.isPending && <Skeleton className="h-24" />
      ) : items.length === 0 ? (
        <p className="text-g7">
          None yet. A comparison launches one config as several runs, such as on two backends: write one{" "}
          <Link href="/comparisons/new" className="text-accent-text hover:underline">
            here
          </Link>
          , or with <code className="mono">npx rolldeck compare launch -f comparison.yaml</code>.
        </p>
      ) : (
        <>
          <Table label="Launched comparisons">
            <thead>
              <tr>
                <Th>Name</Th>
                <Th right title="Runs that differ in what each variant says">
                  Variants
                </Th>
                <Th>Labels</Th>
                <Th right>Launched</Th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ comparisonId, name, labels, createdAt }) => (
                <tr key={comparisonId} className="hover:bg-g1">
                  <Td>
                    <Link
                      href={`/comparisons/${comparisonId}`}
                      title={name}
                      className="block max-w-[360px] truncate hover:text-accent-text hover:underline"
                    >
                      {name}
                    </Link>
                  </Td>
                  <Td right>{formatCount(labels.length)}</Td>
                  <Td className="text-g8">
                    <span title={labels.join(" · ")} className="block max-w-[560px] truncate">
                      {labels.join(" · ")}
                    </span>
                  </Td>
                  <Td right className="text-g7">
                    <TimeAgo at={createdAt} />
                  </Td>
                </tr>
              ))}
            </tbody>
          </Table>
          {query.hasNextPage && (
            <Button look="quiet" small disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              Show older ones
            </Button>
          )}
        </>
      )}
    </section>
  );
}
