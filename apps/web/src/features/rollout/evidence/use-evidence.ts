"use client";
/** What a rollout left behind besides tokens: well-known artifacts of its attempt, and its sandboxes. */
import { type ArtifactInfo, artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import type { SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTRPC, useTRPCClient } from "../../../api/query-provider.tsx";

/** 1,000 of them each. */
const maxPages = 20;
export const artifactsKey = (rolloutId: string, attempt?: number) =>
  attempt === undefined ? (["artifacts", rolloutId] as const) : (["artifacts", rolloutId, attempt] as const);

type KnownName = keyof typeof artifactNames;

export interface Evidence {
  /** The newest of each well-known name; absent where there is none. */
  readonly known: Readonly<Partial<Record<KnownName, ArtifactInfo>>>;
  readonly all: readonly ArtifactInfo[];
  readonly sandboxes: readonly SandboxInfo[];
  readonly moreSandboxes: boolean;
  readonly loading: boolean;
  readonly error: unknown;
  readonly refresh: () => void;
}

/** @param attempt that is looked at */
export function useEvidence(
  { rolloutId, state }: Pick<RolloutDetail, "rolloutId" | "state">,
  attempt: number,
): Evidence {
  const trpc = useTRPC();
  const client = useTRPCClient();
  const refetchInterval = state === "settled" ? (false as const) : 15_000;
  const artifacts = useQuery({
    queryKey: artifactsKey(rolloutId, attempt),
    queryFn: async ({ signal }) => {
      const all: ArtifactInfo[] = [];
      let after = -1;
      for (let page = 0; page < maxPages; page += 1) {
        const got = await client.rollouts.artifacts.query({ rolloutId, attempt, after }, { signal });
        all.push(...got.artifacts);
        after = got.artifacts.at(-1)?.turn ?? after;
        if (!got.more) break;
      }
      return all;
    },
    refetchInterval,
  });
  // A kept sandbox outlives its rollout: where it stands is asked for as long as the page is open.
  const sandboxes = useQuery(trpc.sandboxes.ofRollout.queryOptions({ rolloutId }, { refetchInterval: 10_000 }));
  const all = artifacts.data;
  const known = useMemo(() => newestByName(all ?? []), [all]);
  return {
    known,
    all: all ?? [],
    sandboxes: sandboxes.data?.sandboxes ?? [],
    moreSandboxes: sandboxes.data?.more ?? false,
    loading: artifacts.isPending || sandboxes.isPending,
    error: artifacts.error ?? sandboxes.error,
    refresh: () => {
      void artifacts.refetch();
      void sandboxes.refetch();
    },
  };
}

/** They come by turn and call: a later one takes the place of an earlier. */
function newestByName(all: readonly ArtifactInfo[]): Partial<Record<KnownName, ArtifactInfo>> {
  const known: Partial<Record<KnownName, ArtifactInfo>> = {};
  for (const [key, name] of Object.entries(artifactNames)) {
    const newest = all.findLast((artifact) => artifact.name === name);
    if (newest && isKnown(key)) known[key] = newest;
  }
  return known;
}
const isKnown = (key: string): key is KnownName => Object.hasOwn(artifactNames, key);
