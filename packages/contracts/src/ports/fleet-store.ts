/**
 * Where the fleet is kept. Every change is a compare-and-set: it names the worker's claim, and changes nothing where that is not
 * the newest. A device is leased to one worker at most, by the key of its row.
 */
import type { FleetAction, FleetHostSpec, FleetReason, FleetSnapshot, FleetWorkerState, WorkerRole } from "../fleet.ts";
import type { HostFacts } from "./fleet.ts";

export interface FleetHostRow {
  readonly spec: FleetHostSpec;
  readonly state: "unseen" | "ready" | "lost";
  readonly draining: boolean;
  /** Milliseconds since its facts were read; null = never. */
  readonly factsAgeMs: number | null;
}

/** A worker that holds leases. */
export interface PlacedWorker {
  readonly id: string;
  readonly runId: string;
  readonly role: WorkerRole;
  readonly device: "gpu" | "cpu";
  readonly state: FleetWorkerState;
  readonly host: string;
  readonly claim: number;
  /** Those it holds. */
  readonly devices: readonly string[];
  readonly containerId: string | null;
  readonly bootId: string | null;
  /** Nobody has renewed its lease in time. */
  readonly leasePast: boolean;
  /** Milliseconds since it was placed. */
  readonly placedForMs: number;
}

export interface FleetRows {
  readonly hosts: readonly FleetHostRow[];
  readonly placed: readonly PlacedWorker[];
  readonly snapshot: FleetSnapshot;
}

/** Which placement of which worker. */
export interface Placed {
  readonly id: string;
  readonly claim: number;
}

/** A run whose files on the hosts nobody can want. */
export interface ForgettableRun {
  readonly runId: string;
  readonly workerIds: readonly string[];
}

export interface FleetStore {
  read(): Promise<FleetRows>;
  hostSeen(name: string): Promise<void>;
  /** Also takes its devices as they are now; those that are gone get nothing any more. */
  hostFacts(name: string, facts: HostFacts): Promise<void>;
  /** It did not answer: lost once that has lasted. */
  hostAway(name: string, reason: FleetReason): Promise<void>;
  /** @returns the claim of a placement, 0 for another change; null where the row has moved on and nothing was changed */
  apply(action: FleetAction): Promise<number | null>;
  /** @returns those whose claim still holds */
  renew(workers: readonly Placed[]): Promise<ReadonlySet<string>>;
  /** Its container runs. @returns false where the claim is lost */
  started(worker: Placed, container: { readonly containerId: string; readonly url: string }): Promise<boolean>;
  /** It answers. */
  ready(worker: Placed, bootId: string): Promise<boolean>;
  /** It ended, or never began. @param counts as a failure of its own */
  ended(worker: Placed, reason: FleetReason, counts: boolean): Promise<boolean>;
  /** It was to stop, and its container is gone: its leases go back. */
  gone(worker: Placed): Promise<boolean>;
  forgettable(): Promise<readonly ForgettableRun[]>;
  /** Its files are gone from every host. */
  forgotten(runId: string): Promise<void>;
}
