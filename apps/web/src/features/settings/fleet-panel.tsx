"use client";
/** The fleet of GPU workers: hosts with what is free on them, and the workers of runs, or why they wait. */
import type { Fleet, FleetHostInfo } from "@rolldeck/contracts/api/fleet";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import Link from "next/link";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatBytes, formatCount } from "../../format/numbers.ts";
import { FleetState, FleetWhy } from "./fleet-state.tsx";
import { hostLooks } from "./fleet-states.ts";
import { FleetWorkerCells, FleetWorkerHeads } from "./fleet-worker-cells.tsx";

export function FleetPanel({ mayChange }: { mayChange: boolean }): JSX.Element {
  const trpc = useTRPC();
  const fleet = useQuery(trpc.fleet.get.queryOptions(undefined, { refetchInterval: 5_000 }));
  return (
    <section aria-label="GPU hosts" className="flex flex-col gap-4">
      <h2 className="text-lg font-semibold">GPU hosts</h2>
      <QueryError query={fleet} doing="read the fleet" />
      {fleet.isPending && <Skeleton className="h-16" />}
      {fleet.data && fleet.data.hosts.length === 0 && (
        <p className="text-g8">
          No host is registered. <code className="mono">npx rolldeck fleet add-host</code> takes a machine by its Docker
          socket, by TCP with TLS, or by SSH; a namespace of a Kubernetes cluster; a Ray cluster; or, without any of
          them, the machine of this server.
        </p>
      )}
      {fleet.data && fleet.data.hosts.length > 0 && <Hosts hosts={fleet.data.hosts} mayChange={mayChange} />}
      {fleet.data && fleet.data.workers.length > 0 ? (
        <Workers workers={fleet.data.workers} />
      ) : (
        fleet.data && fleet.data.hosts.length > 0 && <p className="text-g7">No run has a worker there.</p>
      )}
    </section>
  );
}

function Hosts({ hosts, mayChange }: { hosts: Fleet["hosts"]; mayChange: boolean }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const drain = useMutation(
    trpc.fleet.drainHost.mutationOptions({
      onSuccess: (fleet) => client.setQueryData(trpc.fleet.get.queryKey(), fleet),
    }),
  );
  return (
    <>
      {drain.error && <ErrorBanner error={drain.error} doing="change the host" />}
      <Table label="GPU hosts">
        <thead>
          <tr>
            <Th>Host</Th>
            <Th>State</Th>
            <Th title="GPUs, and places for workers without one, as the host reported them last">Devices</Th>
            <Th right title="Devices that no worker has">
              Free devices
            </Th>
            <Th right title="When it answered last: its Docker daemon, or its cluster">
              Last seen
            </Th>
            {mayChange && <ActionsTh />}
          </tr>
        </thead>
        <tbody>
          {hosts.map((host) => (
            <tr key={host.name}>
              <Td className="py-1.5 align-top">
                <div>{host.name}</div>
                <div className="mono text-sm text-g7">{host.endpoint}</div>
              </Td>
              <Td className="py-1.5 align-top">
                <FleetState look={hostLooks[host.state]} text={host.state} why={null} />
              </Td>
              <Td className="py-1.5 align-top">
                {host.lastSeenAt === null ? "not known yet" : deviceWords(host)}
                {host.trouble !== null && <FleetWhy reason={host.trouble} />}
              </Td>
              <Td right className="py-1.5 align-top">
                {host.lastSeenAt === null ? "n/a" : freeWords(host)}
              </Td>
              <Td right className="py-1.5 align-top">
                <TimeAgo at={host.lastSeenAt} />
              </Td>
              {mayChange && (
                <Td right className="py-1.5 align-top">
                  <Button
                    look="quiet"
                    small
                    className="font-sans"
                    disabled={drain.isPending}
                    onClick={() => drain.mutate({ name: host.name, draining: host.state !== "draining" })}
                  >
                    {host.state === "draining" ? "Take workers again" : "Drain"}
                  </Button>
                </Td>
              )}
            </tr>
          ))}
        </tbody>
      </Table>
    </>
  );
}

function Workers({ workers }: { workers: Fleet["workers"] }): JSX.Element {
  return (
    <>
      <Table label="GPU workers of runs">
        <thead>
          <tr>
            <Th>Run</Th>
            <FleetWorkerHeads />
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.workerId}>
              <Td className="py-1.5 align-top">
                <Link href={`/runs/${worker.runId}`} className="text-accent-text hover:underline">
                  {worker.runName}
                </Link>
              </Td>
              <FleetWorkerCells worker={worker} />
            </tr>
          ))}
        </tbody>
      </Table>
      <p className="text-sm text-g7">
        <code className="mono">npx rolldeck fleet logs WORKER</code> prints the last lines of one, by its copied id. Of
        those that are over, the newest 50 are listed.
      </p>
    </>
  );
}

const present = (host: FleetHostInfo, kind: "gpu" | "cpu") =>
  host.devices.filter((device) => device.kind === kind && device.present);

function deviceWords(host: FleetHostInfo): string {
  const counts = new Map<string, number>();
  for (const { model, memoryMb } of present(host, "gpu")) {
    const each = memoryMb > 0 ? `, ${formatBytes(memoryMb * 1024 * 1024)} each` : "";
    counts.set(`${model}${each}`, (counts.get(`${model}${each}`) ?? 0) + 1);
  }
  const places = present(host, "cpu").length;
  const words = [
    ...[...counts].map(([model, count]) => `${formatCount(count)} × ${model}`),
    ...(places > 0 ? [`${formatCount(places)} without a GPU`] : []),
  ];
  return words.length > 0 ? words.join("; ") : "none";
}

function freeWords(host: FleetHostInfo): string {
  const all = host.devices.filter((device) => device.present);
  return `${formatCount(all.filter((device) => device.workerId === null).length)} of ${formatCount(all.length)}`;
}
