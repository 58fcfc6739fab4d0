/** The fleet in Postgres. */
import type { FleetStore } from "@rolldeck/contracts/ports/fleet-store";
import type pg from "pg";
import { applyFleetAction } from "./apply-fleet-action.ts";
import { fleetHostAway, fleetHostFacts, fleetHostSeen } from "./fleet-hosts.ts";
import { forgettableRuns, runForgotten } from "./forgettable-runs.ts";
import { renewPlacements, workerEnded, workerGone, workerReady, workerStarted } from "./placed-workers.ts";
import { readFleet } from "./read-fleet.ts";
import { unwantIdleReaders, wantServingReaders } from "./readers.ts";
import { unwantIdleRuns } from "./want-workers.ts";

export function fleetStore(pool: pg.Pool): FleetStore {
  return {
    read: async () => {
      await unwantIdleRuns(pool);
      await unwantIdleReaders(pool);
      await wantServingReaders(pool);
      return readFleet(pool);
    },
    hostSeen: (name) => fleetHostSeen(pool, name),
    hostFacts: (name, facts) => fleetHostFacts(pool, name, facts),
    hostAway: (name, reason) => fleetHostAway(pool, name, reason),
    apply: (action) => applyFleetAction(pool, action),
    renew: (workers) => renewPlacements(pool, workers),
    started: (worker, container) => workerStarted(pool, worker, container),
    ready: (worker, bootId) => workerReady(pool, worker, bootId),
    ended: (worker, reason, counts) => workerEnded(pool, worker, reason, counts),
    forgettable: () => forgettableRuns(pool),
    forgotten: (runId) => runForgotten(pool, runId),
    gone: (worker) => workerGone(pool, worker),
  };
}
