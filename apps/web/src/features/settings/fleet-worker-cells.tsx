/** What a table says of a GPU worker of the fleet, wherever it is listed. */
import type { FleetWorkerInfo } from "@rolldeck/contracts/api/fleet";
import type { JSX } from "react";
import { CopyText } from "../../design/copy-text.tsx";
import { Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatCount, shortenId } from "../../format/numbers.ts";
import { FleetState } from "./fleet-state.tsx";
import { workerLooks, workerName } from "./fleet-states.ts";

export function FleetWorkerHeads(): JSX.Element {
  return (
    <>
      <Th title="colocated: samples and updates on the same devices; else a trainer updates and samplers sample; a reader gives what was saved">
        Worker
      </Th>
      <Th>State</Th>
      <Th>Host and devices</Th>
      <Th right title="How often it was started anew">
        Restarts
      </Th>
      <Th right title="When it ended; else when it was ready, was placed, or was asked for">
        Since
      </Th>
    </>
  );
}

export function FleetWorkerCells({ worker }: { worker: FleetWorkerInfo }): JSX.Element {
  return (
    <>
      <Td className="py-1.5 align-top">
        {workerName(worker)} <CopyText text={worker.workerId}>{shortenId(worker.workerId)}</CopyText>
      </Td>
      <Td className="py-1.5 align-top">
        <FleetState look={workerLooks[worker.state]} text={worker.state} why={worker.reason} />
      </Td>
      <Td className="py-1.5 align-top">
        {worker.host ?? "none yet"}
        {worker.deviceIds.map((id) => (
          <div key={id}>
            <CopyText text={id}>{shortenId(id, 8)}</CopyText>
          </div>
        ))}
      </Td>
      <Td right className="py-1.5 align-top">
        {formatCount(worker.restarts)}
      </Td>
      <Td right className="py-1.5 align-top">
        <TimeAgo at={worker.endedAt ?? worker.readyAt ?? worker.placedAt ?? worker.queuedAt} />
      </Td>
    </>
  );
}
