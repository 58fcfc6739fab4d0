"use client";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { useCrumbs } from "../shell/page-header.ts";
import { ApiTokens } from "./api-tokens.tsx";
import { SystemPanel } from "./system-panel.tsx";

export function SettingsPage(): JSX.Element {
  const trpc = useTRPC();
  useCrumbs([{ label: "Settings", href: "/settings" }]);
  const state = useQuery(trpc.system.state.queryOptions(undefined, { refetchInterval: 5_000 }));
  const me = useQuery(trpc.auth.me.queryOptions());
  return (
    <div className="flex w-full max-w-[960px] flex-col gap-8 p-4">
      <header className="flex items-baseline gap-3">
        <h1 className="text-xl font-semibold">Settings</h1>
        {me.data && (
          <span className="text-sm text-g7">
            signed in as {me.data.name} ({me.data.kind}, {me.data.scopes.join(" and ")})
          </span>
        )}
      </header>
      {state.error && (
        <ErrorBanner error={state.error} doing="read the system's state" onRetry={() => void state.refetch()} />
      )}
      {state.data ? (
        <SystemPanel state={state.data} />
      ) : (
        problemOf(state.error).status === null && <Skeleton className="h-48" />
      )}
      {me.data?.kind === "owner" && <ApiTokens />}
    </div>
  );
}
