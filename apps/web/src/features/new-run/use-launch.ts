"use client";
/** Launches a text once: the same text keeps its key, so a second press or a retry after a lost answer starts nothing twice. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { useRef } from "react";
import { idempotencyKey, useTRPCClient } from "../../api/query-provider.tsx";
import { runListKey } from "../runs/use-run-list.ts";

/** 128 random bits as text; unlike randomUUID it also exists on plain http. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export function useLaunch(text: string, config: unknown, on: { launched(): void; refused(): void }) {
  const client = useTRPCClient();
  const queries = useQueryClient();
  const router = useRouter();
  const key = useRef<{ readonly text: string; readonly value: string } | null>(null);
  return useMutation({
    mutationFn: () => {
      if (key.current?.text !== text) key.current = { text, value: newKey() };
      return client.runs.launch.mutate({ config }, { context: { [idempotencyKey]: key.current.value } });
    },
    onSuccess: ({ runId }) => {
      on.launched();
      void queries.invalidateQueries({ queryKey: [runListKey] });
      router.push(`/runs/${runId}`);
    },
    onError: () => on.refused(),
  });
}
