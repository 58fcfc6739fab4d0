"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { sandboxStates } from "@rolldeck/contracts/api/sandboxes";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { parseAsStringLiteral, useQueryState } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount } from "../../format/numbers.ts";
import { SandboxTable } from "../rollout/evidence/sandbox-table.tsx";
import { unlessFrozen } from "./unless-frozen.ts";

const refreshMs = 5_000;

/** How many sandboxes the run has had, and has now. */
export function useSandboxCounts(runId: string, frozen: boolean): { readonly all: number; readonly live: number } {
  const trpc = useTRPC();
  const query = useQuery(
    trpc.sandboxes.ofRun.queryOptions({ runId, limit: 1 }, { enabled: unlessFrozen(frozen), refetchInterval: 15_000 }),
  );
  const counts = query.data?.counts;
  if (!counts) return { all: 0, live: 0 };
  return { all: Object.values(counts).reduce((sum, count) => sum + count, 0), live: counts.open + counts.kept };
}

/** The run's sandboxes: those that are there, or all of them. */
export function SandboxesTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const router = useRouter();
  const [which, setWhich] = useQueryState("which", parseAsStringLiteral(["live", "all"]).withDefault("live"));
  const query = useQuery(
    trpc.sandboxes.ofRun.queryOptions(
      { runId: run.runId, which, limit: 500 },
      { enabled: unlessFrozen(frozen), refetchInterval: refreshMs, placeholderData: (known) => known },
    ),
  );
  const done = { onSettled: () => query.refetch() };
  const keep = useMutation(trpc.sandboxes.keep.mutationOptions(done));
  const close = useMutation(trpc.sandboxes.close.mutationOptions(done));
  const page = query.data;
  const error = query.error ?? keep.error ?? close.error;
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 px-4 py-2">
        <Segmented
          label="Which"
          options={[
            { value: "live", label: "Live" },
            { value: "all", label: "All" },
          ]}
          value={which}
          onChange={(value) => void setWhich(value)}
        />
        {page && (
          <span className="figures text-sm text-g7">
            {sandboxStates
              .filter((state) => page.counts[state] > 0)
              .map((state) => `${formatCount(page.counts[state])} ${state === "open" ? "in use" : state}`)
              .join(" · ")}
          </span>
        )}
      </div>
      {error && (
        <div className="px-4 pb-2">
          <ErrorBanner
            error={error}
            doing={query.error ? "load the sandboxes" : keep.error ? "keep the sandbox" : "close the sandbox"}
            onRetry={query.error ? () => void query.refetch() : undefined}
          />
        </div>
      )}
      {!page ? (
        query.isPending && <Skeleton className="mx-4 h-64" />
      ) : page.sandboxes.length === 0 ? (
        <NoSandboxes opened={Object.values(page.counts).some((count) => count > 0)} ended={run.endedAt !== null} />
      ) : (
        <div className="min-h-0 flex-1 overflow-auto px-2">
          <SandboxTable
            sandboxes={page.sandboxes}
            chosen={null}
            busy={keep.isPending || close.isPending}
            withRollout
            onShell={({ rolloutId, sandboxId }) =>
              router.push(`/runs/${run.runId}/t/${rolloutId}?pane=sandboxes&shell=${sandboxId}`)
            }
            onKeep={({ sandboxId }) => keep.mutate({ sandboxId, minutes: 30 })}
            onLetGo={({ sandboxId }) => close.mutate({ sandboxId })}
          />
          {page.more && <p className="px-2 py-2 text-sm text-g7">Only the newest 500 are listed.</p>}
        </div>
      )}
    </>
  );
}

function NoSandboxes({ opened, ended }: { opened: boolean; ended: boolean }): JSX.Element {
  if (!opened)
    return (
      <EmptyState title={ended ? "This run opened no sandbox" : "This run has opened no sandbox"}>
        <p>
          {ended
            ? "Its tasks act in none."
            : "They appear as rollouts are set up. Tasks that act in none, such as key-chain, never open one."}
        </p>
      </EmptyState>
    );
  return (
    <EmptyState title="No sandbox is there now">
      <p>
        Sandboxes are closed when their rollout is done with them; <em>All</em> lists those. To look into one
        afterwards, set <code className="mono">sandbox.keep</code> in the run's config.
      </p>
    </EmptyState>
  );
}
