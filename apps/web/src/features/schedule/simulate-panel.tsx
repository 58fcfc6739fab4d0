"use client";
/** What other policies and pool sizes would change: played by the server over what was recorded of this run. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { SimulationInfo } from "@rolldeck/contracts/api/simulations";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { formatCount } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { SimulationReport } from "./simulation-report.tsx";

export function SimulatePanel({ run }: { run: RunDetail }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [simulationId, setSimulationId] = useState<string | null>(null);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const catalogue = useQuery(trpc.catalogue.get.queryOptions(undefined, { staleTime: 60_000 }));
  const start = useMutation(
    trpc.simulations.start.mutationOptions({ onSuccess: (info) => setSimulationId(info.simulationId) }),
  );
  const cancel = useMutation(
    trpc.simulations.cancel.mutationOptions({
      onSettled: () => client.invalidateQueries(trpc.simulations.get.pathFilter()),
    }),
  );
  const query = useQuery(
    trpc.simulations.get.queryOptions(
      { simulationId: simulationId ?? "" },
      {
        enabled: simulationId !== null,
        refetchInterval: ({ state }) => (state.data === undefined || state.data.state === "running" ? 400 : false),
      },
    ),
  );
  const names = (catalogue.data?.dispatchers ?? []).map(({ name }) => name);
  const chosen = names.filter((name) => !left.has(name));
  const info = query.data ?? start.data ?? null;
  const playing = start.isPending || info?.state === "running";
  const error = start.error ?? query.error ?? cancel.error ?? catalogue.error;
  return (
    <section aria-label="Simulate" className="flex flex-col gap-2 border-t border-g3 pt-3">
      <h2 className="flex flex-wrap items-baseline gap-x-3 font-semibold">
        Simulate
        <span className="text-sm font-normal text-g7">
          The planner itself, in virtual time over what was recorded of this run: present bounds and down to half and up
          to twice of them, policy by policy.
        </span>
      </h2>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <fieldset className="flex flex-wrap items-center gap-x-3">
          <legend className="sr-only">Policies</legend>
          {names.map((name) => (
            <label
              key={name}
              className="inline-flex h-8 items-center gap-1.5"
              title={describe(catalogue.data?.dispatchers ?? [], name)}
            >
              <input
                type="checkbox"
                checked={!left.has(name)}
                onChange={(event) => setLeft(without(left, name, event.target.checked))}
                className="size-4 accent-accent"
              />
              {name}
            </label>
          ))}
        </fieldset>
        {playing && info ? (
          <Button onClick={() => cancel.mutate({ simulationId: info.simulationId })}>Stop the simulation</Button>
        ) : (
          <Button
            disabled={start.isPending || names.length === 0}
            onClick={() => start.mutate({ runId: run.runId, ...(left.size === 0 ? {} : { dispatchers: chosen }) })}
          >
            Simulate
          </Button>
        )}
        <span role="status" className="figures text-sm text-g7">
          {info && progressText(info)}
        </span>
      </div>
      {error && <ErrorBanner error={error} doing="simulate this run" />}
      {info?.result && <SimulationReport run={run} result={info.result} />}
    </section>
  );
}

const describe = (dispatchers: readonly { readonly name: string; readonly description: string }[], name: string) =>
  dispatchers.find((each) => each.name === name)?.description;

function without(left: ReadonlySet<string>, name: string, isIn: boolean): ReadonlySet<string> {
  const next = new Set(left);
  if (isIn) next.delete(name);
  else next.add(name);
  return next;
}

function progressText({ state, played, elapsedMs, reason }: SimulationInfo): string {
  const count = `${formatCount(played)} simulation${played === 1 ? "" : "s"} in ${formatDuration(elapsedMs)}`;
  if (state === "running") return `${count}, at most 30 s`;
  if (state === "done") return count;
  return state === "cancelled" ? `stopped after ${count}` : (reason ?? "It failed.");
}
