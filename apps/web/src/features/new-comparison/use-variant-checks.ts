"use client";
import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import { mergeConfig } from "@rolldeck/contracts/merge-config";
import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useTRPCClient } from "../../api/query-provider.tsx";
import { useSettled } from "../new-run/use-config-check.ts";
import type { VariantDraft } from "./variant-draft.ts";

export interface VariantCheck {
  /** As the launch makes it. */
  readonly merged: unknown;
  readonly check: ConfigCheck | undefined;
  readonly checking: boolean;
  readonly error: unknown;
}

/** The server's word on each variant's whole config, asked once typing pauses. @param common undefined: not read yet */
export function useVariantChecks(common: unknown, variants: readonly VariantDraft[]): VariantCheck[] {
  const client = useTRPCClient();
  // The comparison's name takes the place of the config's own.
  const merged = variants.map(({ change }) => (common === undefined ? undefined : mergeConfig(common, change)));
  const text = JSON.stringify(merged);
  const settled = useSettled(text);
  const asked: unknown = JSON.parse(settled);
  const configs: readonly unknown[] = Array.isArray(asked) ? asked : [];
  const answers = useQueries({
    queries: configs.map((config) => ({
      queryKey: ["config-check", JSON.stringify(config)],
      queryFn: ({ signal }: { signal: AbortSignal }) => client.runs.check.mutate({ config }, { signal }),
      enabled: config !== null && config !== undefined,
      placeholderData: keepPreviousData,
      staleTime: 10_000,
    })),
  });
  return merged.map((config, at) => {
    const answer = answers[at];
    return {
      merged: config,
      check: answer?.data,
      checking: settled !== text || (answer?.isFetching ?? true),
      error: answer?.error ?? null,
    };
  });
}
