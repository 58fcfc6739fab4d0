/** Workers that end, or start again: those nobody wants, those whose host is gone, those that ended by themselves. */
import {
  endedFleetWorkerStates,
  type FleetAction,
  type FleetSnapshot,
  type WorkerSnapshot,
} from "@rolldeck/contracts/fleet";
import * as reasons from "./reasons.ts";
import { groupOf, waitingLine } from "./waiting-line.ts";

/** A worker that ended so many times in a row by itself is not started again. */
export const maxFailures = 3;

/** @returns at most one action for each worker, in the order of their ids */
export function endWorkers(snapshot: FleetSnapshot): FleetAction[] {
  const broken = new Set(
    waitingLine(snapshot)
      .filter((run) => run.broken)
      .map((run) => run.group),
  );
  const present = new Set(snapshot.hosts.filter((host) => host.state !== "lost").map((host) => host.name));
  return [...snapshot.workers]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((worker) => {
      const action = endOf(worker, broken.has(groupOf(worker)), present);
      return action ? [action] : [];
    });
}

function endOf(worker: WorkerSnapshot, broken: boolean, present: ReadonlySet<string>): FleetAction | null {
  const { id: workerId, state } = worker;
  if (state === "stopping" || endedFleetWorkerStates.includes(state)) return null;
  if (!worker.wanted)
    return { type: "stop", workerId, reason: worker.role === "reader" ? reasons.unused : reasons.unwanted };
  if (broken) return { type: "stop", workerId, reason: reasons.brokenRun };
  if (state === "queued") return null;
  if (worker.host !== null && !present.has(worker.host))
    return { type: "restart", workerId, reason: reasons.hostLost(worker) };
  if (state !== "lost") return null;
  return worker.failures >= maxFailures
    ? { type: "fail", workerId, reason: reasons.tooManyFailures(worker) }
    : { type: "restart", workerId, reason: reasons.containerEnded(worker) };
}
