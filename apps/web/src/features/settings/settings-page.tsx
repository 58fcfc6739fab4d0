"use client";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { useCrumbs } from "../shell/page-header.ts";
import { ApiTokens } from "./api-tokens.tsx";
import { FleetPanel } from "./fleet-panel.tsx";
import { ServedCheckpoints } from "./served-checkpoints.tsx";
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
      <QueryError query={state} doing="read the system's state" />
      {state.data ? (
        <SystemPanel state={state.data} />
      ) : (
        problemOf(state.error).status === null && <Skeleton className="h-48" />
      )}
      <FleetPanel mayChange={me.data?.kind === "owner"} />
      <ServedCheckpoints />
      {me.data?.kind === "owner" && <ApiTokens />}
    </div>
  );
}
