"use client";
import { useQuery } from "@tanstack/react-query";
import { useTRPC } from "../../api/query-provider.tsx";

/** The runs made right after and right before this one, among the newest 200. */
export function useAdjacentRun(runId: string): { readonly newer: string | null; readonly older: string | null } {
  const trpc = useTRPC();
  const { data } = useQuery(trpc.runs.list.queryOptions({ limit: 200 }, { staleTime: 30_000 }));
  const at = data?.items.findIndex((run) => run.runId === runId) ?? -1;
  if (at < 0) return { newer: null, older: null };
  return { newer: data?.items[at - 1]?.runId ?? null, older: data?.items[at + 1]?.runId ?? null };
}
