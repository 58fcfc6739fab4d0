/** What the fleet's loop and its parts are given. */
import type { WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import type { FleetHostRow, FleetStore } from "@rolldeck/contracts/ports/fleet-store";

export interface FleetScene {
  readonly store: FleetStore;
  readonly launcherOf: (host: FleetHostRow["spec"]) => WorkerLauncher;
  /** Secret between control plane and workers of a run; starts with `tml-`. */
  readonly keyOf: (runId: string) => string;
  readonly say: (message: string, error?: unknown) => void;
  /** A line of a worker's log. */
  readonly onLog?: (workerId: string, line: string) => void;
  /** Workers of a run of which nothing is left on the hosts. */
  readonly onForgotten?: (workerIds: readonly string[]) => void;
  /** Time of the last line that an earlier process was given of it; null = none. */
  readonly loggedUntil?: (workerId: string) => string | null;
}
