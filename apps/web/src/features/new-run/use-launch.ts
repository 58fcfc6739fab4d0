"use client";
/** Launches a text once. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { idempotencyKey, useTRPCClient } from "../../api/query-provider.tsx";
import { runListKey } from "../runs/use-run-list.ts";
import { useOnceKey } from "./use-once-key.ts";

export function useLaunch(text: string, config: unknown, on: { launched(): void; refused(): void }) {
  const client = useTRPCClient();
  const queries = useQueryClient();
  const router = useRouter();
  const keyOf = useOnceKey();
  return useMutation({
    mutationFn: () => client.runs.launch.mutate({ config }, { context: { [idempotencyKey]: keyOf(text) } }),
    onSuccess: ({ runId }) => {
      on.launched();
      void queries.invalidateQueries({ queryKey: [runListKey] });
      router.push(`/runs/${runId}`);
    },
    onError: () => on.refused(),
  });
}
