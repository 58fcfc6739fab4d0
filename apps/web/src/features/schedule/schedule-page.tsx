"use client";
/** Pools across runs: what there is, who holds it, who waits, and what the operator lets them have. */
import { useQuery } from "@tanstack/react-query";
import { parseAsStringLiteral, useQueryState } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { useCrumbs } from "../shell/page-header.ts";
import { PoolDialog } from "./pool-dialog.tsx";
import { PoolTable } from "./pool-table.tsx";
import { resourceOrder } from "./pool-words.ts";
import { QuotaSection } from "./quota-section.tsx";
import { ShareTable } from "./share-table.tsx";

export function SchedulePage(): JSX.Element {
  const trpc = useTRPC();
  useCrumbs([{ label: "Schedule", href: "/schedule" }]);
  const [editing, setEditing] = useQueryState("set", parseAsStringLiteral(resourceOrder));
  const me = useQuery(trpc.auth.me.queryOptions());
  const query = useQuery(
    trpc.schedule.pools.queryOptions(undefined, { refetchInterval: 2_000, placeholderData: (known) => known }),
  );
  const pools = query.data?.pools;
  const maySet = me.data?.kind === "owner";
  const edited = maySet && editing !== null ? pools?.find(({ resource }) => resource === editing) : undefined;
  const withRuns = pools?.some(({ runs }) => runs.length > 0) ?? false;
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-6 overflow-auto p-4">
      <header className="flex flex-wrap items-baseline gap-x-3">
        <h1 className="text-xl font-semibold">Schedule</h1>
        <span className="text-sm text-g7">
          What runs share: by priority first, then fair by weight. A stage starts only while its pool has room.
        </span>
      </header>
      <QueryError query={query} doing="read the pools" />
      {!pools ? (
        query.isPending && <Skeleton className="h-48" />
      ) : (
        <>
          <section aria-label="Pools">
            <PoolTable pools={pools} onEdit={maySet ? ({ resource }) => void setEditing(resource) : null} />
          </section>
          <section aria-label="Runs" className="flex flex-col gap-1">
            <h2 className="flex flex-wrap items-baseline gap-x-3 text-lg font-semibold">
              Runs
              {withRuns && (
                <span className="text-sm font-normal text-g7">
                  held of what each may hold now; <span className="num text-paused">+n</span> rollouts wait
                </span>
              )}
            </h2>
            {withRuns ? (
              <ShareTable pools={pools} />
            ) : (
              <p className="text-g7">
                No run holds or wants anything. <code className="mono">npx rolldeck run launch -f run.yaml</code>{" "}
                launches one.
              </p>
            )}
          </section>
          <QuotaSection pools={pools} maySet={maySet} />
        </>
      )}
      {edited && <PoolDialog key={edited.resource} pool={edited} onClose={() => void setEditing(null)} />}
    </div>
  );
}
