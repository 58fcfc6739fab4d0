/** Who can read what a run on the fleet saved, by the rows of its workers, in words. Pure. */
import type { FleetReading } from "@rolldeck/contracts/api/checkpoints";
import { endedFleetWorkerStates, type RunWorker } from "@rolldeck/contracts/fleet";
import { type RunFiles, readerIdleMinutes } from "@rolldeck/db/fleet/readers";

export function fleetReading(files: RunFiles): FleetReading {
  const { workers } = files;
  const reader = workers.find(({ role }) => role === "reader");
  const meant = findReading(workers) ?? workers.find(isComing) ?? null;
  const found = meant ?? (reader?.wanted ? reader : null);
  return {
    ...standing(found),
    worker: found === null ? null : { workerId: found.id, role: found.role, state: found.state, host: found.host },
    wakeRefusal: wakeRefusal(files),
    canRelease: reader?.wanted === true,
  };
}

/** Whom to ask for files: the run's own worker where it answers, else its reader. @param workers of a run */
export const findReading = (workers: readonly RunWorker[]): RunWorker | undefined =>
  workers.find(({ role, state }) => role !== "reader" && role !== "sampler" && state === "ready") ??
  workers.find(({ role, state }) => role === "reader" && state === "ready");

const isComing = ({ wanted, state }: RunWorker): boolean => wanted && !endedFleetWorkerStates.includes(state);

const asleep = `No worker of this run is on the fleet now. A reader that is asked for starts where its files are, takes one device, and is given back after ${readerIdleMinutes} minutes without use.`;

function standing(found: RunWorker | null): Pick<FleetReading, "state" | "message" | "remedy"> {
  if (found === null) return { state: "asleep", message: asleep, remedy: null };
  const { role, state, host, reason } = found;
  const name = role === "reader" ? "The reader" : "The run's own worker";
  const remedy = reason?.remedy ?? null;
  if (state === "ready") return { state: "ready", message: `${name} answers on host ${host}.`, remedy: null };
  if (endedFleetWorkerStates.includes(state))
    return { state: "asleep", message: `${name} ${reason?.message ?? "ended for good"}.`, remedy };
  const said =
    state === "starting" ? `starts on host ${host}` : (reason?.message ?? "waits for its place on the fleet");
  return { state: "coming", message: `${name} ${said}.`, remedy };
}

function wakeRefusal({ host, hostIsRegistered, workers }: RunFiles): string | null {
  const own = workers.find((worker) => worker.role !== "reader");
  if (own === undefined || host === null) return "None of the run's workers has had a place on the fleet yet.";
  if (own.wanted) return "The run's own worker is wanted: files are read through it.";
  if (!hostIsRegistered)
    return `Its files are on host ${host}, which is not registered any more: register the machine again under that name.`;
  return null;
}
