"use client";
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { useQuery } from "@tanstack/react-query";
import { useTRPC } from "../../api/query-provider.tsx";

export interface Neighbours {
  readonly previousSibling: string | null;
  readonly nextSibling: string | null;
  readonly previousGroup: string | null;
  readonly nextGroup: string | null;
}

/** Where ←/→ and n/p lead: siblings by sample; groups in the order of the step's matrix, same sample. */
export function useNeighbours(rollout: RolloutDetail | null): Neighbours {
  const trpc = useTRPC();
  const { data: matrix } = useQuery(
    trpc.runs.matrix.queryOptions(
      { runId: rollout?.runId ?? "", purpose: rollout?.purpose ?? "train", step: rollout?.step ?? 0 },
      { enabled: rollout !== null, staleTime: 60_000 },
    ),
  );
  if (!rollout) return { previousSibling: null, nextSibling: null, previousGroup: null, nextGroup: null };
  const sibling = rollout.siblings.findIndex((each) => each.rolloutId === rollout.rolloutId);
  const group = matrix?.groups.findIndex((each) => each.groupId === rollout.groupId) ?? -1;
  const inGroup = (at: number) => {
    const cells = group < 0 || at < 0 ? undefined : matrix?.groups[at]?.cells;
    return (cells?.find((cell) => cell.sample === rollout.sample) ?? cells?.[0])?.rolloutId ?? null;
  };
  return {
    previousSibling: rollout.siblings[sibling - 1]?.rolloutId ?? null,
    nextSibling: rollout.siblings[sibling + 1]?.rolloutId ?? null,
    previousGroup: inGroup(group - 1),
    nextGroup: inGroup(group + 1),
  };
}
