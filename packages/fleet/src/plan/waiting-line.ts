/**
 * The line of runs whose workers wait, in an order that no later moment changes. A level of priority is worth a fixed time of
 * waiting, so that whoever waits long enough is ahead of whatever comes.
 */
import { endedFleetWorkerStates, type FleetSnapshot, type WorkerSnapshot } from "@rolldeck/contracts/fleet";
import { groupBy } from "@rolldeck/contracts/group-by";

/** One level of priority is worth so much waiting. */
export const priorityWorthMs = 600_000;

/** The workers of one run that start together: its own, or its reader alone. */
export interface RunWorkers {
  /** As `groupOf`. */
  readonly group: string;
  /** Host of the files that they read, where they have to start; null: anywhere. */
  readonly filesOn: string | null;
  /** All that are wanted and not over. */
  readonly members: readonly WorkerSnapshot[];
  readonly queued: readonly WorkerSnapshot[];
  /** Being started, or serving. */
  readonly held: readonly WorkerSnapshot[];
  /** One of its workers ended for good: the others are of no use to it. */
  readonly broken: boolean;
}

/** A run that goes on does not wait for who reads its files, nor the other way. */
export const groupOf = ({ runId, role }: Pick<WorkerSnapshot, "runId" | "role">): string =>
  role === "reader" ? `${runId} reader` : runId;

/** All groups that want workers, the one that goes first at the front. */
export function waitingLine(snapshot: FleetSnapshot): RunWorkers[] {
  const wanted = snapshot.workers.filter((worker) => worker.wanted);
  const runs = groupBy(wanted, groupOf);
  const line = [...runs].map(([group, workers]) => {
    const all = [...workers].sort((a, b) => (a.id < b.id ? -1 : 1));
    const members = all.filter((worker) => !endedFleetWorkerStates.includes(worker.state));
    return {
      group,
      filesOn: members.find(({ filesOn }) => filesOn != null)?.filesOn ?? null,
      members,
      queued: members.filter((worker) => worker.state === "queued"),
      held: members.filter((worker) => worker.state === "starting" || worker.state === "ready"),
      broken: members.length < all.length,
      rank: Math.min(...all.map((worker) => worker.queuedAt - worker.priority * priorityWorthMs)),
    };
  });
  return line.sort((a, b) => a.rank - b.rank || (a.group < b.group ? -1 : 1));
}

/** With what it holds the run can work, if less well than with all of its workers. */
export function canWork(held: readonly Pick<WorkerSnapshot, "role">[]): boolean {
  const has = (role: WorkerSnapshot["role"]): boolean => held.some((worker) => worker.role === role);
  return has("colocated") || has("reader") || (has("trainer") && has("sampler"));
}
