/**
 * Reacts to what became of the runs this process works for: a run that stops or is over takes its claims along within the
 * watch's period, whatever those wait for; a pausing one gets its rollouts handed back at their next turn boundary.
 */
import { endedRunStatuses, type RunStatus } from "@rolldeck/contracts/lifecycle";
import type { WatchedRun } from "./run-watch.ts";
import { StageAbort } from "./stage-abort.ts";

const over: readonly RunStatus[] = [...endedRunStatuses, "stopping"];
const pausing: readonly RunStatus[] = ["pausing", "paused"];

export class StoppedRuns {
  readonly #leases: { abortRun(runId: string, reason: StageAbort): void };
  readonly #pausing = new Set<string>();

  constructor(leases: { abortRun(runId: string, reason: StageAbort): void }) {
    this.#leases = leases;
  }

  isPausing(runId: string): boolean {
    return this.#pausing.has(runId);
  }

  see(runs: readonly WatchedRun[]): void {
    this.#pausing.clear();
    for (const { runId, status } of runs) {
      if (over.includes(status)) this.#leases.abortRun(runId, new StageAbort("run-ended", `the run is ${status}`));
      if (pausing.includes(status)) this.#pausing.add(runId);
    }
  }
}
