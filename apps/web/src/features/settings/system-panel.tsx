"use client";
import type { SystemState } from "@rolldeck/contracts/api/system";
import Link from "next/link";
import type { JSX } from "react";
import { Chip, type ChipTone } from "../../design/chip.tsx";
import { Facts } from "../../design/facts.tsx";
import { Mark, type MarkShape } from "../../design/mark.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatBytes, formatCount, shortenId } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { poolWords, resourceOrder } from "../schedule/pool-words.ts";

type GpuWorker = SystemState["gpuWorkers"][number];
const gpuTones: Record<GpuWorker["state"], ChipTone> = {
  installing: "running",
  starting: "running",
  ready: "done",
  lost: "paused",
  absent: "neutral",
  failed: "failed",
};
const gpuMarks: Record<GpuWorker["state"], MarkShape> = {
  installing: "half",
  starting: "half",
  ready: "disc",
  lost: "bars",
  absent: "ring",
  failed: "triangle",
};

/** As everywhere. */
const inOrder = (pools: SystemState["pools"]): SystemState["pools"] =>
  [...pools].sort((a, b) => resourceOrder.indexOf(a.resource) - resourceOrder.indexOf(b.resource));

const health = (ok: boolean): JSX.Element => (
  <Chip tone={ok ? "done" : "failed"}>
    <Mark shape={ok ? "disc" : "triangle"} size={9} /> {ok ? "ok" : "no answer"}
  </Chip>
);

export function SystemPanel({ state }: { state: SystemState }): JSX.Element {
  return (
    <>
      <section aria-label="System" className="flex flex-col gap-2">
        <h2 className="text-lg font-semibold">System</h2>
        <Facts
          rows={[
            [
              "Version",
              <span key="version" className="num">
                {state.version}
              </span>,
            ],
            [
              "Database",
              <span key="database" className="inline-flex items-center gap-2">
                {state.database.kind === "embedded" ? "Postgres, embedded" : "Postgres, external"}{" "}
                {health(state.database.ok)}
              </span>,
            ],
            [
              "Queue",
              <span key="queue" className="inline-flex items-center gap-2">
                {state.queue.kind === "redis" ? "Redis" : "the same Postgres"} {health(state.queue.ok)}
              </span>,
            ],
          ]}
        />
      </section>
      <section aria-label="GPU workers">
        <h2 className="mb-1 text-lg font-semibold">GPU workers</h2>
        {state.gpuWorkers.length === 0 ? (
          <p className="text-g8">
            None is known. <code className="mono">npm start</code> starts one;{" "}
            <code className="mono">npx rolldeck doctor</code> says what it misses.
          </p>
        ) : (
          <Table label="GPU workers">
            <thead>
              <tr>
                <Th>Name</Th>
                <Th>State</Th>
                <Th>Message</Th>
                <Th>Device</Th>
                <Th>Boot</Th>
                <Th right>Seen</Th>
              </tr>
            </thead>
            <tbody>
              {state.gpuWorkers.map((worker) => (
                <tr key={worker.name}>
                  <Td>{worker.name}</Td>
                  <Td>
                    <Chip tone={gpuTones[worker.state]}>
                      <Mark shape={gpuMarks[worker.state]} size={9} /> {worker.state}
                    </Chip>
                  </Td>
                  <Td className="text-sm">
                    {worker.message}
                    {worker.done !== null && worker.total !== null && (
                      <span className="num text-g7">
                        {" "}
                        {worker.unit === "bytes" ? formatBytes(worker.done) : formatCount(worker.done)} of{" "}
                        {worker.unit === "bytes"
                          ? formatBytes(worker.total)
                          : `${formatCount(worker.total)} ${worker.unit ?? ""}`}
                        , {formatDuration(worker.elapsedMs)}
                      </span>
                    )}
                  </Td>
                  <Td>{worker.device ?? "n/a"}</Td>
                  <Td className="mono text-sm">{worker.bootId ? shortenId(worker.bootId) : "n/a"}</Td>
                  <Td right>
                    <TimeAgo at={worker.lastSeenAt} />
                  </Td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </section>
      <div className="grid grid-cols-2 gap-8">
        <section aria-label="Workers">
          <h2 className="mb-1 text-lg font-semibold">Workers</h2>
          {state.workers.length === 0 ? (
            <p className="text-g8">No worker process reports: runs stay queued until one does.</p>
          ) : (
            <Table label="Workers">
              <thead>
                <tr>
                  <Th>Worker</Th>
                  <Th right>Stages</Th>
                  <Th right>Seen</Th>
                </tr>
              </thead>
              <tbody>
                {state.workers.map((worker) => (
                  <tr key={worker.workerId} className={worker.alive ? undefined : "text-g7"}>
                    <Td>
                      <span className={worker.alive ? "text-done" : "text-failed"}>
                        <Mark
                          shape={worker.alive ? "disc" : "triangle"}
                          size={9}
                          label={worker.alive ? "alive" : "silent"}
                        />
                      </span>{" "}
                      <span className="mono text-sm" title={worker.workerId}>
                        {shortenId(worker.workerId, 8)}
                      </span>
                    </Td>
                    <Td right>{formatCount(worker.stages)}</Td>
                    <Td right>
                      <TimeAgo at={worker.lastSeenAt} />
                    </Td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )}
        </section>
        <section aria-label="Pools">
          <h2 className="mb-1 flex items-baseline gap-3 text-lg font-semibold">
            Pools
            <Link href="/schedule" className="text-sm font-normal text-accent-text hover:underline">
              who holds them
            </Link>
          </h2>
          <Table label="Pools">
            <thead>
              <tr>
                <Th>Pool</Th>
                <Th>Use</Th>
                <Th right>Held</Th>
                <Th right title="Sandboxes that stay for people: they take room, and no run holds them">
                  Kept
                </Th>
                <Th right>Size</Th>
              </tr>
            </thead>
            <tbody>
              {inOrder(state.pools).map((pool) => (
                <tr key={pool.resource}>
                  <Td title={poolWords[pool.resource].definition}>{poolWords[pool.resource].label}</Td>
                  <Td className="w-32">
                    <span aria-hidden="true" className="block h-1.5 overflow-hidden rounded-full bg-g3">
                      <span
                        className="block h-full bg-g7"
                        style={{
                          width: `${pool.size > 0 ? Math.min(1, (pool.used + pool.kept) / pool.size) * 100 : 0}%`,
                        }}
                      />
                    </span>
                  </Td>
                  <Td right>{formatCount(pool.used)}</Td>
                  <Td right>
                    {pool.kept > 0 ? <span title="They stay for people">{formatCount(pool.kept)}</span> : ""}
                  </Td>
                  <Td right>{formatCount(pool.size)}</Td>
                </tr>
              ))}
            </tbody>
          </Table>
        </section>
      </div>
    </>
  );
}
