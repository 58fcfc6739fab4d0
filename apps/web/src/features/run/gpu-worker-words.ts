/** A run's GPU workers in a sentence. Pure. */
import type { FleetWorkerInfo } from "@rolldeck/contracts/api/fleet";
import { endedFleetWorkerStates } from "@rolldeck/contracts/fleet";
import { formatCount } from "../../format/numbers.ts";
import { workerName } from "../settings/fleet-states.ts";

type Worker = Pick<FleetWorkerInfo, "role" | "replica" | "state" | "wanted" | "reason" | "host">;

/** It is wanted and does not serve. */
export const needsLook = ({ wanted, state }: Worker): boolean => wanted && state !== "ready";

/** @param workers of a run on the fleet @param isOver the run is */
export function gpuWorkerWords(workers: readonly Worker[], isOver: boolean): string {
  const wanted = workers.filter((worker) => worker.wanted);
  if (workers.length === 0)
    return isOver ? "the run ended before it asked for any" : "asked for when the run is prepared";
  if (wanted.length === 0)
    return workers.every(({ state }) => endedFleetWorkerStates.includes(state)) ? "given back" : "being given back";
  const ready = wanted.filter(({ state }) => state === "ready");
  const hosts = [...new Set(ready.map(({ host }) => host))].join(", ");
  const count = `${formatCount(ready.length)} of ${formatCount(wanted.length)} ready${ready.length > 0 ? ` on ${hosts}` : ""}`;
  const trouble = wanted.find(needsLook);
  return trouble === undefined ? count : `${count}; ${workerName(trouble)} ${standing(trouble)}`;
}

function standing({ state, reason, host }: Worker): string {
  if (state === "starting") return `starts on ${host}`;
  if (reason !== null) return reason.message;
  return state === "queued" ? "waits for its place" : `is ${state}`;
}
