"use client";
/** A run's GPU workers on the fleet: where each is and since when, or why it waits, and the end of its log. Other runs show nothing. */
import type { FleetWorkerInfo } from "@rolldeck/contracts/api/fleet";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { endedFleetWorkerStates } from "@rolldeck/contracts/fleet";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { useQuery } from "@tanstack/react-query";
import { parseAsBoolean, parseAsString, useQueryState } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { visibleText } from "../../design/visible-text.ts";
import { workerName } from "../settings/fleet-states.ts";
import { FleetWorkerCells, FleetWorkerHeads } from "../settings/fleet-worker-cells.tsx";
import { useKeys } from "../shell/keys.ts";
import { gpuWorkerWords, needsLook } from "./gpu-worker-words.ts";
import { unlessFrozen } from "./unless-frozen.ts";

const refreshMs = 5_000;
const logLines = 100;

export function GpuWorkersPanel({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element | null {
  return run.config.backend.fleet === null ? null : <OnFleet run={run} frozen={frozen} />;
}

function OnFleet({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const isOver = endedRunStatuses.includes(run.status);
  const query = useQuery(
    trpc.fleet.ofRun.queryOptions(
      { runId: run.runId },
      {
        enabled: unlessFrozen(frozen),
        // A reader may be asked for at any time: then an event says so.
        refetchInterval: ({ state }) => (isOver && isQuiet(state.data?.workers) ? false : refreshMs),
      },
    ),
  );
  const workers = query.data?.workers;
  const [asked, setAsked] = useQueryState("workers", parseAsBoolean);
  const open = asked ?? workers?.some(needsLook) ?? false;
  const toggle = () => void setAsked(!open);
  useKeys("Run", [{ keys: "w", label: "Show or hide the GPU workers", run: toggle }]);
  return (
    <section aria-label="GPU workers" className="mx-4 mt-3 shrink-0 text-sm">
      <QueryError query={query} doing="read the run's GPU workers" />
      {query.isPending && <Skeleton className="h-6" />}
      {workers && (
        <p className="flex items-baseline gap-2">
          <Button look="quiet" small aria-expanded={open} onClick={toggle}>
            GPU workers
          </Button>
          <span className="min-w-0 text-g8 [overflow-wrap:anywhere]">{gpuWorkerWords(workers, isOver)}</span>
        </p>
      )}
      {workers && open && <Workers workers={workers} frozen={frozen} />}
    </section>
  );
}

const isQuiet = (workers: readonly FleetWorkerInfo[] | undefined): boolean =>
  workers?.every(({ state }) => endedFleetWorkerStates.includes(state)) ?? false;

function Workers({ workers, frozen }: { workers: readonly FleetWorkerInfo[]; frozen: boolean }): JSX.Element {
  const [logOf, setLogOf] = useQueryState("log", parseAsString);
  const shown = workers.find(({ workerId }) => workerId === logOf);
  if (workers.length === 0) return <p className="py-1 text-g7">There is none to show.</p>;
  return (
    <div className="max-h-[42vh] overflow-auto">
      <Table label="GPU workers of this run">
        <thead>
          <tr>
            <FleetWorkerHeads />
            <Th>Log</Th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.workerId}>
              <FleetWorkerCells worker={worker} />
              <Td className="py-1.5 align-top">
                <Button
                  look="quiet"
                  small
                  aria-expanded={worker === shown}
                  aria-label={`Log of the ${workerName(worker)}`}
                  onClick={() => void setLogOf(worker === shown ? null : worker.workerId)}
                >
                  {worker === shown ? "Hide" : "Show"}
                </Button>
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
      {shown && <Log worker={shown} frozen={frozen} />}
    </div>
  );
}

function Log({ worker, frozen }: { worker: FleetWorkerInfo; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const { workerId, state } = worker;
  const log = useQuery(
    trpc.fleet.log.queryOptions(
      { workerId, lines: logLines },
      {
        enabled: unlessFrozen(frozen),
        refetchInterval: endedFleetWorkerStates.includes(state) ? false : refreshMs,
      },
    ),
  );
  return (
    <section aria-label={`Log of the ${workerName(worker)}`} className="py-1">
      <QueryError query={log} doing="read the worker's log" />
      {log.isPending && <Skeleton className="h-16" />}
      {log.data && (
        <pre className="max-h-72 overflow-auto whitespace-pre-wrap rounded-md bg-g2 p-2 text-xs [overflow-wrap:anywhere]">
          {log.data.lines.length === 0 ? "It has printed nothing yet." : log.data.lines.map(visibleText).join("\n")}
        </pre>
      )}
      {log.data?.more && (
        <p className="text-g7">
          The last {logLines} lines; <code className="mono">npx rolldeck fleet logs {workerId} -n 2000</code> prints
          more.
        </p>
      )}
    </section>
  );
}
