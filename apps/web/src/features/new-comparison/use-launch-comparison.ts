"use client";
/** Launches a comparison once. */
import type { LaunchedComparison } from "@rolldeck/contracts/api/comparisons";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { idempotencyKey, useTRPCClient } from "../../api/query-provider.tsx";
import { launchedComparisonsKey } from "../comparison/launched-comparisons.tsx";
import { useOnceKey } from "../new-run/use-once-key.ts";
import { runListKey } from "../runs/use-run-list.ts";
import type { VariantDraft } from "./variant-draft.ts";

interface ComparisonDraft {
  readonly name: string;
  readonly config: unknown;
  readonly variants: readonly VariantDraft[];
}

export function useLaunchComparison(draft: ComparisonDraft, refused: () => void) {
  const client = useTRPCClient();
  const queries = useQueryClient();
  const router = useRouter();
  const keyOf = useOnceKey();
  return useMutation({
    mutationFn: () =>
      client.comparisons.launch.mutate(
        { ...draft, variants: [...draft.variants] },
        { context: { [idempotencyKey]: keyOf(JSON.stringify(draft)) } },
      ),
    onSuccess: ({ comparisonId }: LaunchedComparison) => {
      for (const key of [runListKey, launchedComparisonsKey]) void queries.invalidateQueries({ queryKey: [key] });
      router.push(`/comparisons/${comparisonId}`);
    },
    onError: refused,
  });
}
