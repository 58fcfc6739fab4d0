"use client";
import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTRPCClient } from "../../api/query-provider.tsx";

const settleMs = 300;

/** A text once it has stood still: what is asked for it is not asked at every key. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    if (settled === text) return;
    const timer = setTimeout(() => setSettled(text), settleMs);
    return () => clearTimeout(timer);
  }, [text, settled]);
  return settled;
}

/** The server's word on the config, asked once typing pauses; the last word stays while a new one is on its way. */
export function useConfigCheck(value: unknown): {
  readonly check: ConfigCheck | undefined;
  readonly checking: boolean;
  readonly error: unknown;
} {
  const client = useTRPCClient();
  const text = JSON.stringify(value);
  const settled = useSettled(text);
  const query = useQuery({
    queryKey: ["config-check", settled],
    queryFn: ({ signal }) => client.runs.check.mutate({ config: JSON.parse(settled) }, { signal }),
    enabled: settled !== "null",
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
  return { check: query.data, checking: settled !== text || query.isFetching, error: query.error };
}
